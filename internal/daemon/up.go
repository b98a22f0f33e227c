package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/local"
)

// UpConfig is what Up needs.
type UpConfig struct {
	// Dir keeps the control plane's data, the mirrors and the renders.
	Dir        string
	Controller Config
	Out        io.Writer
}

// Up runs a control plane and the controller on this machine until ctx ends.
func Up(ctx context.Context, cfg UpConfig) error {
	cfg.Controller.defaults()
	unlock, err := lock(cfg.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	hub, err := local.Start(ctx, local.Options{Name: "rutter", Dir: filepath.Join(cfg.Dir, "controlplane"), Shape: local.Hub, Sync: true})
	if err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	defer func() { _ = hub.Stop(context.WithoutCancel(ctx)) }()
	rc, err := hub.RESTConfig()
	if err != nil {
		return err
	}
	if err := Install(ctx, rc, cfg.Controller.Namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-hub.Done()
		cancel(errors.New("the control plane has ended; its log is " + hub.Log))
	}()
	cfg.Controller.REST, cfg.Controller.DataDir = rc, filepath.Join(cfg.Dir, "data")
	cfg.Controller.Listening = func(addr string) {
		fmt.Fprintf(cfg.Out, "Rutter is up.\n\n  export KUBECONFIG=%s\n  webhook: http://%s/api/webhook   metrics: http://%s/metrics\n\nCtrl-C stops it; 'rutter up' goes on from here.\n", hub.Kubeconfig, addr, addr)
	}
	if err := Run(ctx, cfg.Controller); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// lock makes sure that one process uses a folder; it ends with the process.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, rutter.Errorf(rutter.CodeConflict, "another rutter uses %s: stop it, or choose another folder with --dir", dir)
	}
	return func() { f.Close() }, nil
}
