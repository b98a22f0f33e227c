// Package engine is the place where the verbs meet: observe, decide, act. It
// keeps the units, their desired objects (on disk, by digest), and a verdict
// of some hundred bytes for each live object; it wakes a unit when its
// declaration, its sources or something live changes, and never otherwise.
//
// The engine ring knows the vocabulary, the pure deciders and the ports; it
// imports no technology. Each unit is processed by one worker at a time; a
// sync runs beside it in a goroutine of its own, so that waiting for a wave
// holds no worker.
package engine
