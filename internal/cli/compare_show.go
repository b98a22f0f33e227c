package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

const (
	// mostNames are the clusters of a line that are named.
	mostNames = 6
	// mostCauses are the causes of a line that are shown; -o json has all.
	mostCauses = 3
)

// showMatrix prints rows under their objects: a column for each cluster would be too
// wide for any terminal. What was found in all ends it, also where only some is shown.
func showMatrix(w io.Writer, m matrix.Matrix, found []string) {
	object := ""
	for _, row := range m.Rows {
		if name := nameOfRow(row); name != object {
			object = name
			fmt.Fprintln(w, printable(name))
		}
		fmt.Fprintf(w, "  %-10s  %s\n", row.Verdict, printable(orElse(row.Field, "(the whole object)")))
		for _, c := range row.Cells {
			fmt.Fprintf(w, "      %s: %s\n", printable(someNames(c.Columns)), printable(cellText(c)))
			for _, because := range causesOf(c) {
				fmt.Fprintf(w, "          %s\n", printable(because))
			}
		}
	}
	for _, line := range found {
		fmt.Fprintln(w, printable(line))
	}
}

// markdownMatrix prints a table of Markdown.
func markdownMatrix(w io.Writer, m matrix.Matrix, found []string) {
	if len(m.Rows) > 0 {
		fmt.Fprintf(w, "| object | field | verdict | clusters | value | because |\n|---|---|---|---|---|---|\n")
	}
	for _, row := range m.Rows {
		for i, c := range row.Cells {
			head := []string{"", "", ""}
			if i == 0 {
				head = []string{code(nameOfRow(row)), code(row.Field), "**" + string(row.Verdict) + "**"}
			}
			causes := causesOf(c)
			for j := range causes {
				causes[j] = code(causes[j])
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", strings.Join(head, " | "), code(someNames(c.Columns)), code(cellText(c)), strings.Join(causes, "<br>"))
		}
	}
	if len(m.Rows) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range found {
		fmt.Fprintf(w, "- %s\n", code(line))
	}
}

// code is text that Markdown leaves as it is, in a cell of a table too.
func code(text string) string {
	if text == "" {
		return ""
	}
	text = printable(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + strings.ReplaceAll(text, "|", "\\|") + fence
}

// matrixSummary says how much was found, and what was not looked at.
func matrixSummary(m matrix.Matrix) []string {
	intended, accidental, unknown, compared := 0, 0, 0, 0
	for _, row := range m.Rows {
		switch row.Verdict {
		case matrix.Both:
			intended, accidental = intended+1, accidental+1
		case matrix.Intended:
			intended++
		case matrix.Accidental:
			accidental++
		case matrix.NotCompared:
			unknown++
		}
	}
	var away []string
	for _, c := range m.Columns {
		if c.Problem == "" {
			compared++
			continue
		}
		away = append(away, fmt.Sprintf("not compared: %s (%s): %s", c.Name, c.Application, c.Problem))
	}
	text := fmt.Sprintf("%s compared: %s, %d accidental; %s the same everywhere",
		count(compared, "cluster"), count(intended, "intended difference"), accidental, count(m.Equal, "object"))
	if unknown > 0 {
		text += fmt.Sprintf("; %d could not be compared", unknown)
	}
	return append([]string{text}, away...)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func nameOfRow(row matrix.Row) string {
	return rutter.Ref{Group: row.Group, Kind: row.Kind, Namespace: row.Namespace, Name: row.Name}.String()
}

func cellText(c matrix.Cell) string {
	text := orElse(c.Declared, "(not declared)")
	switch {
	case c.Unknown:
		return text + ", live: not known"
	case c.Drifted:
		return orElse(c.Live, "(not there)") + " instead of " + text
	}
	return text
}

// causesOf are the causes of a cell in words, with whose they are where not all
// columns have the same.
func causesOf(c matrix.Cell) []string {
	var out []string
	for i, b := range c.Because {
		if i == mostCauses {
			return append(out, fmt.Sprintf("and %d more: see -o json", len(c.Because)-mostCauses))
		}
		text := b.Text
		if len(b.Columns) < len(c.Columns) {
			text = someNames(b.Columns) + ": " + text
		}
		out = append(out, text)
	}
	return out
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func someNames(names []string) string {
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}
