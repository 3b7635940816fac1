package llm

import (
	"encoding/json"
	"sync"
)

// Schemas caches how an adapter sends the schemas of tools: all requests send the same few.
type Schemas struct {
	write func(json.RawMessage) []byte
	mu    sync.RWMutex
	sent  map[string][]byte
	size  int // bytes of both sides
}

// NewSchemas returns an empty cache of what write returns for schemas.
func NewSchemas(write func(schema json.RawMessage) []byte) *Schemas {
	return &Schemas{write: write, sent: map[string][]byte{}}
}

// maxSchemas bounds the memory: users bring tools of their own. What is full
// begins anew.
const maxSchemas = 4 << 20

// Sent returns a schema as it is sent. It must not be changed.
func (s *Schemas) Sent(schema json.RawMessage) []byte {
	s.mu.RLock()
	out, ok := s.sent[string(schema)]
	s.mu.RUnlock()
	if ok {
		return out
	}
	out = s.write(schema)
	size := len(schema) + len(out)
	if size > maxSchemas/8 {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sent[string(schema)]; ok { // another request was faster
		return out
	}
	if s.size+size > maxSchemas {
		clear(s.sent)
		s.size = 0
	}
	s.sent[string(schema)] = out
	s.size += size
	return out
}
