// Package argo translates between Argo CD's objects and the engine's words:
// Applications into units, reports into statuses, Secrets into clusters and
// credentials. PURE ring: values in, values out.
//
// Whatever a user can write and Rutter does not act on yet is named in a
// condition of its own; nothing is ignored in silence.
package argo
