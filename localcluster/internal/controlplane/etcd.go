package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdURL is where this cluster's etcd listens: a socket that only its owner can open.
func (c *Cluster) etcdURL() string { return "unix://" + filepath.Join(c.sockets, "etcd") }

// startEtcd starts etcd and waits until it serves.
func (c *Cluster) startEtcd(ctx context.Context) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Name = "etcd"
	cfg.Dir = filepath.Join(c.opts.Dir, "etcd")
	client := url.URL{Scheme: "unix", Path: filepath.Join(c.sockets, "etcd")}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(c.sockets, "peer")}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	cfg.UnsafeNoFsync = !c.opts.Sync
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "periodic", "10m"
	cfg.QuotaBackendBytes = 8 << 30
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
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
