package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// HomePaths expands ~/ in flags that name a file or folder. The shell only does so in some places: not in the config file, in
// variables of systemd, or after the = of a flag.
var HomePaths = kong.KindMapper(reflect.String, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var value string
	err := ctx.Scan.PopValueInto("string", &value)
	if tag := ctx.Value.Tag; err == nil && tag != nil && (tag.PlaceHolder == "FILE" || tag.PlaceHolder == "DIR") {
		value, err = expandHome(value)
	}
	target.SetString(value)
	return err
}))

// expandHome returns a path with the home folder in place of a leading ~.
func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path, errors.New("~ stands for the home folder, but HOME is not set; use an absolute path")
	}
	return filepath.Join(home, rest), nil
}

// CheckFolder returns an error if the value of a flag is neither empty nor an existing folder.
func CheckFolder(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the folder %s does not exist", flag, path)
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !info.IsDir():
		return fmt.Errorf("%s: %s is not a folder", flag, path)
	}
	return nil
}
