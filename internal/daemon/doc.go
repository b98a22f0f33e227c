// Package daemon is the composition root: the only place that constructs
// adapters and wires them into the engine, the controllers and the HTTP side.
// It holds no logic of its own beyond starting and stopping things.
package daemon
