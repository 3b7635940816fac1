package reserve

const (
	// StepPages unused pages are given back to the disk at a time: writers wait for that.
	StepPages = 64
	// Some are kept, since new events use them again: so many, or a part of the file.
	keepPages = 1024
	keepPart  = 20
	// incremental is the value of auto_vacuum with which pages can be given back.
	incremental = 2
)

// Unused is what a file says of its pages, in a row of three numbers: all, those that are not used, and auto_vacuum.
const Unused = "SELECT page_count, freelist_count, auto_vacuum FROM pragma_page_count, pragma_freelist_count, pragma_auto_vacuum"

// TooMany reports whether a file has so many unused pages that the next StepPages are to be given back, and can be.
func TooMany(all, unused, autoVacuum int64) bool {
	return autoVacuum == incremental && unused >= max(keepPages, all/keepPart)+StepPages
}
