package v0

// Words are the fields of an event or a status that clients go by. A secret that
// happens to be the same word must not be masked in them.
func Words() []string {
	return []string{"timestamp", "source", "action", "observation", "type", "id"}
}
