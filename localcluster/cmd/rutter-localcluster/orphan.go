package main

import (
	"context"
	"io"
	"os"
	"time"
)

// hardStop is how long an orphan may take to stop: nobody is left who would kill it.
const hardStop = 8 * time.Second

// awaitOrphan calls stop when the parent has ended, and ends the process if that
// doesn't, after leave. A parent that holds a pipe to standard input is noticed at once;
// for any other the number of the parent is looked at.
func awaitOrphan(ctx context.Context, stop, leave func()) {
	parent := os.Getppid()
	ended := make(chan struct{})
	if isPipe(os.Stdin) {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end too
			close(ended)
		}()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-tick.C:
			if os.Getppid() == parent {
				continue
			}
		}
		stop()
		time.AfterFunc(hardStop, func() {
			leave()
			os.Exit(1)
		})
		return
	}
}

// isPipe: only a pipe or a socket ends with its other end. A terminal doesn't,
// and the null device has always ended.
func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}
