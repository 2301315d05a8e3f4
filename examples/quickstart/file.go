package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stintmq/stint/core"
)

// File is the payload. Bytes, not strings: a file's name need not be UTF-8, and JSON would change one that is not.
type File struct {
	Folder []byte
	Path   []byte // within Folder
}

func (f File) path() string { return filepath.Join(string(f.Folder), string(f.Path)) }

// key names the job: the path, where that is text that every store can keep, else a hash of it. No path within a
// folder begins with a slash, so the two cannot meet.
func (f File) key() string {
	path := filepath.ToSlash(string(f.Path))
	if len(path) <= core.MaxKeyBytes && utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	sum := sha256.Sum256(f.Path)
	return "/sha256:" + hex.EncodeToString(sum[:])
}

// Stats is the result: what wc and sha256sum say of a file.
type Stats struct {
	Size, Lines, Words int64
	SHA256             string
}

// count reads a file once, and gives up when ctx ends.
func count(ctx context.Context, path string) (Stats, error) {
	f, err := os.Open(path)
	if err != nil {
		return Stats{}, reason(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	c := counter{ctx: ctx}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(hash, &c), f); err != nil {
		return Stats{}, reason(err)
	}
	c.stats.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return c.stats, nil
}

// reason is err without the path, which the job knows already.
func reason(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return about.Err
	}
	return err
}

// hopeless errors are not worth another attempt.
func hopeless(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// counter counts what is written to it.
type counter struct {
	ctx    context.Context //nolint:containedctx // lives as long as one count
	stats  Stats
	inWord bool
}

func (c *counter) Write(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	for _, b := range p {
		switch b {
		case '\n':
			c.stats.Lines++
			c.inWord = false
		case ' ', '\t', '\r', '\v', '\f':
			c.inWord = false
		default:
			if !c.inWord {
				c.stats.Words++
			}
			c.inWord = true
		}
	}
	c.stats.Size += int64(len(p))
	return len(p), nil
}
