package helm

import (
	"io/fs"
	"time"
)

// plainInfo is what the ignore rules ask of a file: its name and whether it is
// a folder. It spares a look-up for each file.
type plainInfo struct{ fs.DirEntry }

// Size implements fs.FileInfo.
func (*plainInfo) Size() int64 { return 0 }

// Mode implements fs.FileInfo.
func (i *plainInfo) Mode() fs.FileMode { return i.Type() }

// ModTime implements fs.FileInfo; files in Git have no time.
func (*plainInfo) ModTime() time.Time { return time.Time{} }

// Sys implements fs.FileInfo.
func (*plainInfo) Sys() any { return nil }
