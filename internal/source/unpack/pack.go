package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/rutterhq/rutter"
)

// A pack is the contents of files, the records as JSON, and an end of fixed
// size: magic, offset of the records, and the SHA-256 of key and records.
const (
	magic   = "rutterpack1\n"
	endSize = len(magic) + 8 + sha256.Size
	// maxTable bounds the records of a pack that is read back.
	maxTable = 256 << 20
)

var errDamaged = errors.New("the stored copy is damaged")

// finish writes the table and the end.
func (b *Builder) finish(key string) error {
	table, err := json.Marshal(b.records)
	if err != nil {
		return rutter.Errorf(rutter.CodeInternal, "writing the table of a pack: %w", err)
	}
	if _, err := b.w.Write(table); err != nil {
		return err //nolint:wrapcheck // the store says what it was doing
	}
	end := append([]byte(magic), binary.BigEndian.AppendUint64(nil, uint64(b.offset))...) //nolint:gosec // it only grows
	sum := sumOf(key, b.offset, table)
	if _, err := b.w.Write(append(end, sum[:]...)); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	return b.w.Flush() //nolint:wrapcheck // likewise
}

// sumOf covers the key as well: a pack that was put in another's place is damaged.
func sumOf(key string, offset int64, table []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write(binary.BigEndian.AppendUint64([]byte{0}, uint64(offset))) //nolint:gosec // it is not negative
	h.Write(table)
	return [sha256.Size]byte(h.Sum(nil))
}

// readTable reads the records of a pack.
func readTable(f *os.File, key string) ([]record, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(endSize) {
		return nil, errDamaged
	}
	end := make([]byte, endSize)
	if _, err := f.ReadAt(end, info.Size()-int64(endSize)); err != nil {
		return nil, err
	}
	offset := int64(binary.BigEndian.Uint64(end[len(magic):])) //nolint:gosec // what wraps around is negative, and refused below
	size := info.Size() - int64(endSize) - offset
	if !bytes.HasPrefix(end, []byte(magic)) || offset < 0 || size < 0 || size > maxTable {
		return nil, errDamaged
	}
	table := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, offset, size), table); err != nil {
		return nil, err
	}
	if sumOf(key, offset, table) != [sha256.Size]byte(end[len(magic)+8:]) {
		return nil, errDamaged
	}
	var records []record
	if err := json.Unmarshal(table, &records); err != nil {
		return nil, errDamaged
	}
	for _, r := range records {
		if r.Offset < 0 || r.Size < 0 || r.Kind != kindLink && r.Offset+r.Size > offset {
			return nil, errDamaged
		}
	}
	return records, nil
}
