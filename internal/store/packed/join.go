package packed

// Joined collects the events of consecutive rows for a row of their own.
type Joined struct {
	At   int64 // the time of the first row
	Rows int
	Body []byte
	mark []byte // of the last row
}

// Add takes in the next row, which has the given time.
func (j *Joined) Add(at int64, row []byte) error {
	row, err := Open(row)
	if err != nil {
		return err
	}
	events, mark, err := parse(row)
	if err != nil {
		return err
	}
	if j.mark != nil && mark == nil { // the doctor needs a damaged log as it is
		return ErrCut
	}
	j.mark = mark
	if j.Rows == 0 {
		j.At = at
	}
	for _, e := range events {
		j.Body = Append(j.Body, e.Kind, at-j.At+e.Delay, e.Body)
	}
	j.Rows++
	return nil
}

// Row is the row of all events.
func (j *Joined) Row() []byte {
	if j.mark == nil {
		return Compress(j.Body)
	}
	return Compress(appendMark(j.Body, Mark(j.mark)))
}

// Until is the row with the events up to a number, of a row that ends with the event last. It is
// nil if there are none. Damaged events are left out.
func Until(row []byte, last, number int64) (kept []byte) {
	events, _ := Events(row) // as many as can be read
	first := last - int64(len(events)) + 1
	for i, e := range events {
		if first+int64(i) <= number {
			kept = Append(kept, e.Kind, e.Delay, e.Body)
		}
	}
	return kept
}

// Opened is a row decompressed, or as it is if it is damaged.
func Opened(row []byte) []byte {
	if body, err := Open(row); err == nil {
		return body
	}
	return row
}
