package daemon

import (
	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/engine"
)

// lateSink hands events to the engine, which is built after the registry that
// sends them; nothing is watched before it is set.
type lateSink struct{ engine *engine.Engine }

// Observed implements rutter.LiveSink.
func (s *lateSink) Observed(ev rutter.LiveEvent) { s.engine.Observed(ev) }

// Listed implements rutter.LiveSink.
func (s *lateSink) Listed(server string, gvk rutter.GVK, epoch int64) {
	s.engine.Listed(server, gvk, epoch)
}

// Tainted implements rutter.LiveSink.
func (s *lateSink) Tainted(server string, gvk rutter.GVK, err error) {
	s.engine.Tainted(server, gvk, err)
}

// Reachable implements rutter.LiveSink.
func (s *lateSink) Reachable(server string, err error) { s.engine.Reachable(server, err) }
