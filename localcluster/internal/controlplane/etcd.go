package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// sockets are where a cluster's etcd listens: a folder that only its owner can
// enter, since etcd asks nobody who they are.
type sockets struct {
	dir       string
	temporary bool
}

// plainPath is a path that means the same as a path and in a URL.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._-]{1,90}$`)

// newSockets uses the cluster's folder; one that is too deep for a socket's
// name, or has a name that a URL would quote, gets a temporary folder.
func newSockets(dir string) (sockets, error) {
	if plainPath.MatchString(dir) {
		return sockets{dir: dir}, nil
	}
	tmp, err := os.MkdirTemp("", "rlc")
	if err != nil {
		return sockets{}, fmt.Errorf("make a folder for etcd's sockets: %w", err)
	}
	return sockets{dir: tmp, temporary: true}, nil
}

func (s sockets) url(name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(s.dir, name)}
}

// String is the URL for etcd's clients.
func (s sockets) String() string { return "unix://" + filepath.Join(s.dir, "etcd.sock") }

func (s sockets) remove() {
	if s.temporary {
		os.RemoveAll(s.dir)
	}
}

// startEtcd starts etcd and waits until it serves.
func startEtcd(ctx context.Context, at sockets, opts Options) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Name = "etcd"
	cfg.Dir = filepath.Join(opts.Dir, "etcd")
	client, peer := at.url("etcd.sock"), at.url("peer.sock")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	cfg.UnsafeNoFsync = !opts.Sync
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "periodic", "10m"
	cfg.QuotaBackendBytes = 8 << 30
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(opts))
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, fmt.Errorf("run etcd: %w", err)
	case <-time.After(30 * time.Second):
		e.Close()
		return nil, errors.New("etcd is not ready after 30 s")
	case <-ctx.Done():
		e.Close()
		return nil, ctx.Err()
	}
}

// etcdLogger writes errors only.
func etcdLogger(opts Options) *zap.Logger {
	enc := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(enc, zapcore.AddSync(opts.Log), zapcore.ErrorLevel))
}
