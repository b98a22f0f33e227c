package generate

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/rutterhq/rutter"
)

// Memory is what the generators of a set answered the last time they could
// look. A generator that fails is given its last answer instead, so that an
// outage leaves its elements in force and no others are kept from changing.
// Only leaves are remembered: 500 clusters and 100 directories are 600 small
// sets of parameters, not the 50,000 that their product has. Lists are written
// in the set and need no memory.
//
// An answer is kept under the digest of the question: a generator that was
// edited, or whose question depends on parameters that changed, has none. Then
// its Applications are left as they are.
//
// The zero value remembers nothing.
type Memory struct {
	answers map[string][]map[string]any
}

// maxMemory bounds what DecodeMemory unpacks.
const maxMemory = 64 << 20

// memoryForm is how a Memory is written.
type memoryForm struct {
	Version int                         `json:"version"`
	Answers map[string][]map[string]any `json:"answers"`
}

// Len is the number of questions that are remembered.
func (m Memory) Len() int { return len(m.answers) }

// Encode writes the memory in at most limit bytes: equal memories are equal
// bytes. The largest answers are left out, and counted, where it would not fit.
func (m Memory) Encode(limit int) (data []byte, left int, err error) {
	answers := maps.Clone(m.answers)
	var bySize []string
	for {
		raw, err := json.Marshal(memoryForm{Version: 1, Answers: answers})
		if err != nil {
			return nil, 0, rutter.Errorf(rutter.CodeInternal, "the last good parameters cannot be written: %w", err)
		}
		data := pack(raw)
		if len(data) <= limit || len(answers) == 0 {
			return data, len(m.answers) - len(answers), nil
		}
		if bySize == nil {
			bySize = m.bySize()
		}
		// As much goes as is too much, and at least one answer, so that this ends soon.
		drop := max(1, len(answers)*(len(data)-limit)/len(data)/2)
		for _, key := range bySize[:drop] {
			delete(answers, key)
		}
		bySize = bySize[drop:]
	}
}

// bySize are the questions, that with the longest answer first.
func (m Memory) bySize() []string {
	size := make(map[string]int, len(m.answers))
	for key, answer := range m.answers {
		raw, err := json.Marshal(answer)
		if err == nil {
			size[key] = len(raw)
		}
	}
	keys := sortedKeys(m.answers)
	slices.SortStableFunc(keys, func(a, b string) int { return size[b] - size[a] })
	return keys
}

func pack(raw []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err == nil {
		_, _ = w.Write(raw) // a buffer takes everything
		_ = w.Close()
	}
	return out.Bytes()
}

// DecodeMemory reads what Encode wrote. Nothing is no memory.
func DecodeMemory(data []byte) (Memory, error) {
	if len(data) == 0 {
		return Memory{}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), maxMemory))
	if err != nil {
		return Memory{}, rutter.Errorf(rutter.CodeInvalid, "the last good parameters cannot be read: %w", err)
	}
	tree, err := toTree(raw)
	if err != nil {
		return Memory{}, rutter.Errorf(rutter.CodeInvalid, "the last good parameters cannot be read: %w", err)
	}
	form, _ := tree.(map[string]any)
	if version, _ := form["version"].(int64); version != 1 {
		return Memory{}, rutter.Errorf(rutter.CodeUnsupported, "the last good parameters are of version %v, want 1", form["version"])
	}
	written, _ := form["answers"].(map[string]any)
	m := Memory{answers: make(map[string][]map[string]any, len(written))}
	for key, value := range written {
		items, _ := value.([]any)
		answer := make([]map[string]any, 0, len(items))
		for _, item := range items {
			if params, ok := item.(map[string]any); ok {
				answer = append(answer, params)
			}
		}
		m.answers[key] = answer
	}
	return m, nil
}

// Digest tells memories apart without writing them out.
func (m Memory) Digest() (string, error) {
	raw, err := json.Marshal(m.answers)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "the last good parameters cannot be written: %w", err)
	}
	return digestOf(raw), nil
}

// digestOf is short enough to be a key and long enough to be the only one.
func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// recall answers a question that could not be answered with the last good
// answer, and notes what was answered for the next time.
func (ev *evaluator) recall(n node, question string, out outcome) outcome {
	if n.kind == kindList {
		return out
	}
	key := digestOf([]byte(question))
	last, known := ev.opts.Memory.answers[key]
	if len(out.errs) == 0 && !slices.ContainsFunc(out.sets, func(s paramSet) bool { return s.err != nil }) {
		answer := make([]map[string]any, len(out.sets))
		for i, s := range out.sets {
			answer[i] = s.params
		}
		ev.memory.answers[key] = answer
		return out
	}
	if known {
		ev.memory.answers[key] = last
	}
	if !known || len(out.errs) == 0 {
		return out
	}
	sets := make([]paramSet, len(last))
	for i, params := range last {
		sets[i] = newSet(params, n.producer())
		sets[i].stale = true
	}
	return outcome{sets: sets, errs: out.errs}
}
