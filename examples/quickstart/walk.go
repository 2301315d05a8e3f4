package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"

	"github.com/stintmq/stint/core"
)

// walk yields the regular files under folder. What cannot be read is reported and left out; symbolic links are
// not followed; files that skip names are none of ours to read.
func walk(folder string, skip func(path string) bool, out *screen) iter.Seq[File] {
	return func(yield func(File) bool) {
		// WalkDir returns what the function does, which is no error.
		_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			within := ""
			if err == nil {
				within, err = filepath.Rel(folder, path)
			}
			if err != nil {
				out.printf("left out: %s", printable(err.Error()))
				return nil
			}
			if !entry.Type().IsRegular() || skip(path) {
				return nil
			}
			if !yield(File{Folder: []byte(folder), Path: []byte(within)}) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// batches gathers files, since a store takes many jobs in about the time of one. It ends early with ctx.
func batches(ctx context.Context, files iter.Seq[File], size int) iter.Seq[[]File] {
	return func(yield func([]File) bool) {
		var batch []File
		for f := range files {
			if batch = append(batch, f); len(batch) < size {
				continue
			}
			if ctx.Err() != nil || !yield(batch) {
				return
			}
			batch = nil
		}
		if len(batch) > 0 && ctx.Err() == nil {
			yield(batch)
		}
	}
}

// sameFolder refuses a store that holds another folder's files: the totals would be of both.
func sameFolder(ctx context.Context, db core.Inspector, folder string) error {
	page, err := db.List(ctx, core.Query{Name: measure.Name(), Limit: 1})
	if err != nil || len(page.Jobs) == 0 {
		return err
	}
	var f File
	if err := json.Unmarshal(page.Jobs[0].Payload, &f); err != nil {
		return fmt.Errorf("read a job of an earlier run: %w", err)
	}
	if string(f.Folder) != folder {
		return fmt.Errorf("the store holds the files of %s: start over with -fresh, or name another -store", printable(string(f.Folder)))
	}
	return nil
}
