package rest

// OrNull is null when there is none.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Deref is the zero value where there is none.
func Deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// OrEmpty is a list that is not null on the wire.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
