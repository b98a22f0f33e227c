package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

// openLog opens the log for appending: the parent may have directed this
// process's standard error to the same file.
func openLog(file string) (*os.File, error) {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	return log, nil
}

// quiet sends the components' errors to w and drops what is less.
func quiet(w io.Writer) {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	_ = fs.Set("v", "0") // the flags are klog's own, and so are their values
	_ = fs.Set("logtostderr", "false")
	_ = fs.Set("alsologtostderr", "false")
	_ = fs.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("ERROR", w)
	klog.SetOutputBySeverity("FATAL", w)
}
