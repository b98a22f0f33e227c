package generate

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"io"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// The ConfigMap beside a set in which the controller keeps what it must not
// forget, and its keys. Commands read the held plan there, since a status has
// no room for thousands of names.
const (
	memoryPrefix = "rutter-applicationset-"
	// MemoryAnswers is the key of Memory, MemoryTicket that of Decision.Ticket,
	// MemoryHeld that of Decision.Held, MemoryWaiting that of Decision.Waiting, and
	// MemoryRemoved that of Decision.Removed.
	MemoryAnswers = "answers"
	MemoryTicket  = "approved"
	MemoryHeld    = "held"
	MemoryWaiting = "waiting"
	MemoryRemoved = "removed"
)

// MemoryName is the name of that ConfigMap: one that is made again with the same
// name is another set, and has another memory.
func MemoryName(set *v1alpha1.ApplicationSet) string { return memoryPrefix + string(set.UID) }

// heldForm is how a Held is written.
type heldForm struct {
	Digest  string   `json:"digest"`
	Count   int      `json:"count"`
	Limit   int      `json:"limit"`
	Of      int      `json:"of"`
	Empties bool     `json:"empties,omitempty"`
	Stay    bool     `json:"objectsStay,omitempty"`
	Paused  int      `json:"paused,omitempty"`
	Recent  int      `json:"recent,omitempty"`
	Within  string   `json:"within,omitempty"`
	Names   []string `json:"names"`
}

// Encode writes the plan in at most limit bytes, for those who show it: where it
// would not fit, the last names are left out.
func (h *Held) Encode(limit int) ([]byte, error) {
	form := heldForm{Digest: h.Digest, Count: len(h.Names), Limit: h.Limit, Of: h.Of, Empties: h.Empties,
		Stay: h.Preserves, Paused: h.Paused, Recent: h.Recent, Names: h.Names}
	if h.Recent > 0 {
		form.Within = h.Window.String()
	}
	for {
		raw, err := json.Marshal(form)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInternal, "the held plan cannot be written: %w", err)
		}
		data := pack(raw)
		if len(data) <= limit || len(form.Names) == 0 {
			return data, nil
		}
		form.Names = form.Names[:len(form.Names)/2]
	}
}

// ShownPlan is a held plan as it was written.
type ShownPlan struct {
	Held

	// Count is the number of Applications, of which Names are the first.
	Count int
}

// DecodeHeld reads what Encode wrote; nothing is no plan.
func DecodeHeld(data []byte) (*ShownPlan, error) {
	if len(data) == 0 {
		return nil, nil
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxMemory))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the held plan cannot be read: %w", err)
	}
	var form heldForm
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the held plan cannot be read: %w", err)
	}
	h := Held{Digest: form.Digest, Names: form.Names, Limit: form.Limit, Of: form.Of, Empties: form.Empties,
		Preserves: form.Stay, Paused: form.Paused, Recent: form.Recent}
	if h.Window, err = time.ParseDuration(cmp.Or(form.Within, "0s")); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the held plan cannot be read: %w", err)
	}
	return &ShownPlan{Held: h, Count: form.Count}, nil
}
