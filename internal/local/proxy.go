package local

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy stands before an API server, so that a test can make it slow, silent
// or unreachable while the server itself stays as it is.
type Proxy struct {
	target   string
	listener net.Listener

	mu    sync.Mutex
	mode  mode
	delay time.Duration
	conns map[net.Conn]bool
}

type mode int

const (
	pass mode = iota
	cut
	hang
)

// NewProxy starts a proxy on a free loopback port before the server of rc.
func NewProxy(ctx context.Context, rc *rest.Config) (*Proxy, error) {
	u, err := url.Parse(rc.Host)
	if err != nil {
		return nil, fmt.Errorf("read the server's URL: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	p := &Proxy{target: u.Host, listener: l, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return "https://" + p.listener.Addr().String() }

// RESTConfig is base through the proxy.
func (p *Proxy) RESTConfig(base *rest.Config) *rest.Config {
	rc := rest.CopyConfig(base)
	rc.Host = p.URL()
	return rc
}

// SetDelay holds back each piece of data by d in both directions.
func (p *Proxy) SetDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut drops every connection and resets new ones at once.
func (p *Proxy) Cut() { p.set(cut, true) }

// Hang lets connections be made and never answers, on old ones neither.
func (p *Proxy) Hang() { p.set(hang, false) }

// Restore passes everything again; connections that hung are dropped.
func (p *Proxy) Restore() { p.set(pass, true) }

// Close ends the proxy.
func (p *Proxy) Close() {
	p.listener.Close()
	p.set(cut, true)
}

func (p *Proxy) set(m mode, drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	if drop {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *Proxy) state() (mode, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.delay
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.track(client, true)
	defer p.track(client, false)
	switch m, _ := p.state(); m {
	case cut:
		if tcp, ok := client.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not an orderly end; without it the client still fails
		}
		return
	case hang:
		_, _ = io.Copy(io.Discard, client) // until it is dropped
		return
	case pass:
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.track(server, true)
	defer p.track(server, false)
	go p.pipe(server, client)
	p.pipe(client, server)
}

// pipe copies until one side ends; while the proxy hangs it swallows.
func (p *Proxy) pipe(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		m, delay := p.state()
		if delay > 0 {
			time.Sleep(delay)
		}
		if n > 0 && m == pass {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) track(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[c] = true
		return
	}
	delete(p.conns, c)
	c.Close()
}
