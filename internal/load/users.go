package load

import (
	"encoding/json"
	"fmt"
	"sync"
)

// Settings is the body that stores a model for a user.
func Settings(model, baseURL string) string {
	body, _ := json.Marshal(map[string]string{"llm_model": model, "llm_base_url": baseURL})
	return string(body)
}

// Users makes n users with a key each and stores the same settings for all. A server limits
// the requests of a key and of a user: a load comes from as many as it has in real life,
// rather than from one that is not limited.
func (s *Server) Users(n int, settings string) ([]string, error) {
	admins, err := s.AdminKeys()
	if err != nil {
		return nil, err
	}
	keys, failures := make([]string, n), make([]error, len(admins))
	var wait sync.WaitGroup
	for a, admin := range admins {
		wait.Go(func() {
			for i := a; i < n && failures[a] == nil; i += len(admins) {
				if keys[i], failures[a] = s.newKey(admin, fmt.Sprintf(`{"user":"user%d"}`, i)); failures[a] == nil {
					failures[a] = s.Store(keys[i], settings)
				}
			}
		})
	}
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// AdminKeys are as many as the limit of one user allows to be used at full rate.
func (s *Server) AdminKeys() ([]string, error) {
	return s.moreKeys(s.Key, `{"admin":true}`)
}

// AllKeys are a user's key and as many more as the limit of one user allows to be used at full rate.
func (s *Server) AllKeys(key string) ([]string, error) { return s.moreKeys(key, `{}`) }

func (s *Server) moreKeys(first, body string) ([]string, error) {
	keys := []string{first}
	for range 3 {
		key, err := s.newKey(first, body)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (s *Server) newKey(admin, body string) (string, error) {
	answer, err := Patient(func() ([]byte, error) {
		return Ask1(s.Addr, Message("POST", "/api/keys", s.Addr, admin, body))
	})
	var made struct {
		Key string `json:"key"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	return made.Key, err
}

// Store stores settings of a key's user.
func (s *Server) Store(key, settings string) error {
	_, err := Patient(func() ([]byte, error) {
		return Ask1(s.Addr, Message("POST", "/api/settings", s.Addr, key, settings))
	})
	return err
}
