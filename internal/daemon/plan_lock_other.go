//go:build !unix

package daemon

import "os"

// lockFile cannot tell here whether another process is at work: each works in a
// folder of its own.
func lockFile(*os.File) bool { return false }
