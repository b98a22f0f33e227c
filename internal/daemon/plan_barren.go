package daemon

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// barren remembers by their hashes which files and which renders declare
// nothing that a plan follows, so that the next plan need not open them. It
// holds facts about content only: it can be lost, and never be wrong.
type barren struct {
	file string

	mu    sync.Mutex
	known map[string]bool
	added []string
}

// maxBarren bounds the index; beyond it starts afresh.
const maxBarren = 500_000

func openBarren(dir string) *barren {
	b := &barren{file: filepath.Join(dir, "plan-nothing-declared.v1"), known: map[string]bool{}}
	data, err := os.ReadFile(b.file)
	if err != nil {
		return b
	}
	for scan := bufio.NewScanner(bytes.NewReader(data)); scan.Scan(); {
		b.known[scan.Text()] = true
	}
	return b
}

func (b *barren) has(hash string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[hash]
}

func (b *barren) add(hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if hash != "" && !b.known[hash] {
		b.known[hash] = true
		b.added = append(b.added, hash)
	}
}

// save keeps what was learnt; a disk that does not take it costs time next time.
func (b *barren) save() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.added) == 0 {
		return
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if len(b.known) > maxBarren {
		flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(b.file, flags, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(strings.Join(b.added, "\n") + "\n")
	_ = f.Close()
}
