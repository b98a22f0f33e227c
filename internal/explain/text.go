package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rutterhq/rutter"
)

// Text is an answer for people.
func Text(a Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s, %s\n", a.Application, cmp.Or(a.Cluster, "an unknown cluster"), cmp.Or(string(a.Sync), "Unknown"), cmp.Or(string(a.Health.Status), "no health"))
	if len(a.Differences) > 0 {
		b.WriteString("\nWhat differs\n")
	}
	for _, d := range a.Differences {
		writeDifference(&b, d)
	}
	if a.More > 0 {
		fmt.Fprintf(&b, "  and %d more objects\n", a.More)
	}
	if len(a.NotSyncing) > 0 {
		b.WriteString("\nWhy it is not syncing\n")
	}
	for _, c := range a.NotSyncing {
		writeCause(&b, "  ", c)
	}
	if len(a.NotHealthy) > 0 {
		b.WriteString("\nWhat is not healthy\n")
	}
	for _, h := range a.NotHealthy {
		fmt.Fprintf(&b, "  %s: %s", named(h.Group, h.Kind, h.Namespace, h.Name), h.Health.Status)
		if h.Health.Message != "" {
			b.WriteString(": " + h.Health.Message)
		}
		b.WriteByte('\n')
		for _, line := range h.Because {
			b.WriteString("    " + line + "\n")
		}
	}
	return b.String()
}

func writeDifference(b *strings.Builder, d Difference) {
	fmt.Fprintf(b, "  %s: %s", named(d.Group, d.Kind, d.Namespace, d.Name), d.State)
	if p := place(rutter.Origin{File: d.File, Line: d.Line}); p != "" {
		b.WriteString(" (Git: " + p + ")")
	}
	if d.Since != "" {
		b.WriteString(", since " + d.Since)
	}
	b.WriteByte('\n')
	if d.Cause != nil {
		writeCause(b, "    ", *d.Cause)
	}
	for _, f := range d.Fields {
		fmt.Fprintf(b, "    %s\n      Git:  %s\n      live: %s\n", f.Path, cmp.Or(f.Desired, "nothing"), cmp.Or(f.Live, "nothing"))
		if f.Returned > 0 {
			fmt.Fprintf(b, "      differs since %s; came back %d times after it was put back\n", f.Since, f.Returned)
		}
		writeCause(b, "      ", f.Cause)
	}
}

func writeCause(b *strings.Builder, indent string, c Cause) {
	fmt.Fprintf(b, "%s%s: %s\n", indent, c.Name, c.Words)
	for line := range strings.SplitSeq(strings.TrimSuffix(c.Remedy, "\n"), "\n") {
		b.WriteString(indent + "> " + line + "\n")
	}
}

func named(group, kind, namespace, name string) string {
	if group != "" {
		kind += "." + group
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
