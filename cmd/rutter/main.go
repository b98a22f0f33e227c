// Command rutter is the whole product: controller, demo and command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rutterhq/rutter/internal/cli"
)

// version is stamped by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, version, deps())
	stop()
	os.Exit(code)
}
