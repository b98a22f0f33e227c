package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/rutterhq/rutter"
)

// Options configure a Server.
type Options struct {
	// Addr is host:port; port 0 picks a free one.
	Addr   string
	Logger *slog.Logger
	// Ready reports why the process is not ready yet, or nil.
	Ready func() error
	// Metrics serves GET /metrics.
	Metrics http.Handler
	// Units lists the reports of all units.
	Units func() []rutter.Report
	// Pushed tells of a push; it returns how many sources and sets are looked at for it.
	Pushed func(Push) int
	// Pulled tells of a pull request; it returns how many sets are looked at for it.
	Pulled func(PullRequest) int
	// Secrets returns the webhook secrets of the moment, by their key in argocd-secret.
	Secrets func() map[string]string
	// AllowUnsigned takes webhooks of providers for which no secret is configured.
	AllowUnsigned bool
	// Profiling serves /debug/pprof.
	Profiling bool
}

// Server serves until its context ends.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
}

// Listen binds the address, so that its port is known before anything is served.
func Listen(ctx context.Context, opts Options) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", opts.Addr, err)
	}
	s := &Server{opts: opts, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", opts.Metrics)
	mux.HandleFunc("GET /api/v1/units", s.units)
	mux.HandleFunc("POST /api/webhook", s.webhook)
	if opts.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	return s, nil
}

// Addr is the bound host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.http.Serve(s.listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop serving %s: %w", s.Addr(), err)
	}
	return nil
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.opts.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// unit is one row of GET /api/v1/units.
type unit struct {
	ID        string   `json:"id"`
	Sync      string   `json:"sync"`
	Health    string   `json:"health"`
	Revisions []string `json:"revisions,omitempty"`
	Resources int      `json:"resources"`
	// Renders counts how often a tool ran for the unit since the process started.
	Renders int64 `json:"renders"`
}

func (s *Server) units(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Units []unit `json:"units"`
	}{Units: []unit{}}
	for _, r := range s.opts.Units() {
		out.Units = append(out.Units, unit{ID: r.ID.String(), Sync: string(r.Sync), Health: string(r.Health.Status),
			Revisions: r.Revisions, Resources: len(r.Resources), Renders: r.Renders})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.opts.Logger.Debug("client went away", "err", err)
	}
}
