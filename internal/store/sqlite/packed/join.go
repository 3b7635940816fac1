package packed

// Joined collects the events of consecutive rows for a row of their own.
type Joined struct {
	At   int64 // the time of the first row
	Rows int
	Body []byte
}

// Add takes in the next row, which has the given time.
func (j *Joined) Add(at int64, row []byte) error {
	events, err := Events(row)
	if err != nil {
		return err
	}
	if j.Rows == 0 {
		j.At = at
	}
	for _, e := range events {
		j.Body = Append(j.Body, e.Kind, at-j.At+e.Delay, e.Body)
	}
	j.Rows++
	return nil
}
