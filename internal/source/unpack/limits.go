package unpack

// Limits bound what an archive may unfold to. Zero values mean the defaults.
type Limits struct {
	// Entries is how many files, folders and links there may be.
	Entries int
	// EntryBytes and TotalBytes bound one file and all together.
	EntryBytes int64
	TotalBytes int64
	// Ratio is how many bytes one byte of the archive may become. It is looked
	// at once RatioFrom bytes have come out, as small archives of text may be
	// packed very well.
	Ratio     int64
	RatioFrom int64
	// Depth is how many folders may lie within one another, PathBytes how long
	// a path may be.
	Depth     int
	PathBytes int
}

func (l Limits) withDefaults() Limits {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	if l.Entries <= 0 {
		l.Entries = 20_000
	}
	if l.Depth <= 0 {
		l.Depth = 40
	}
	if l.PathBytes <= 0 {
		l.PathBytes = 1024
	}
	def(&l.EntryBytes, 64<<20)
	def(&l.TotalBytes, 512<<20)
	def(&l.Ratio, 200)
	def(&l.RatioFrom, 8<<20)
	return l
}

// stream bounds what comes out of an archive with all that is no content:
// headers, padding, and what follows the end.
func (l Limits) stream() int64 { return l.TotalBytes + l.TotalBytes/8 + 16<<20 }
