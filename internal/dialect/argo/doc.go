// Package argo translates between Argo CD's objects and the engine's words:
// Applications into units, reports into statuses, Secrets into clusters and
// credentials; and it decodes files of such objects strictly. PURE ring: values
// in, values out.
//
// Whatever a user can write and Rutter does not act on yet is named in a
// condition of its own; nothing is ignored in silence. Where ignoring it would
// deploy something else than was declared (a plugin, another tag, Jsonnet),
// nothing is synced until it is gone.
package argo
