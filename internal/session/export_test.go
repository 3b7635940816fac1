package session

// Cached says how many folds are kept, and how many entries there are in all.
func (s *Sessions) Cached() (idle, entries int) {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.idle.Len(), len(s.cache.entries)
}

// RememberedKeys is the bound that tests need to go beyond.
const RememberedKeys = rememberedKeys
