//go:build !linux && !darwin

package isolate

// confine does nothing here: what bounds the memory is watch.
func confine(int64) error { return nil }
