// Command rutter is the whole product: controller, demo and command line.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/sandbox"
)

// version is stamped by the build.
var version = "dev"

func main() {
	sandbox.MaybeChild()
	render.MaybeChild()
	// Libraries write warnings to the standard loggers, with values of charts in
	// them; what is for the user comes as an error or a condition.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, version, deps())
	stop()
	os.Exit(code)
}
