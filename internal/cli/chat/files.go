package chat

import (
	"context"
	"path"

	"deckhand/internal/cli/prompt"
)

// files lists files to mention: all files of the folder, or on another server those in the folder
// given by the prefix.
func (s *conversation) files(ctx context.Context, id, prefix string) []string {
	if s.Elsewhere == "" {
		return prompt.Files(s.Folder)
	}
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	folder, _ := path.Split(prefix)
	found, _ := s.Client.ListFiles(ctx, id, folder) // without a list there is nothing to complete
	return found
}
