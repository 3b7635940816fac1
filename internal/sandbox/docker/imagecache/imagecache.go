// Package imagecache remembers what the docker driver learned about images.
package imagecache

import (
	"sync"

	"deckhand/internal/sandbox/docker/account"
)

// Cache has facts about images by the digest of their content, so they never become wrong.
type Cache struct {
	mu     sync.Mutex
	runner map[string]string
	owner  map[string]account.Owner
}

// RunnerOf returns where a prepared image has the runner; "" if it is unknown.
func (c *Cache) RunnerOf(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runner[id]
}

// SetRunner stores where a prepared image has the runner.
func (c *Cache) SetRunner(id, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runner == nil {
		c.runner = map[string]string{}
	}
	c.runner[id] = path
}

// OwnerOf returns the numbers that a user has in an image.
func (c *Cache) OwnerOf(id, user string) (account.Owner, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.owner[id+" "+user]
	return o, ok
}

// SetOwner stores the numbers that a user has in an image.
func (c *Cache) SetOwner(id, user string, o account.Owner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner == nil {
		c.owner = map[string]account.Owner{}
	}
	c.owner[id+" "+user] = o
}
