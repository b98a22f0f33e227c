package lint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
)

// The part of SARIF 2.1.0 that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string      `json:"id"`
		Short   sarifText   `json:"shortDescription"`
		Help    sarifText   `json:"help"`
		Default sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// SARIF returns findings as a log that code hosts show beside the lines of a
// pull request. Version is that of the program.
func SARIF(findings []Finding, version string) ([]byte, error) {
	known := Rules()
	driver := sarifDriver{Name: "rutter lint", InformationURI: "https://github.com/rutterhq/rutter", Version: version}
	for _, r := range known {
		driver.Rules = append(driver.Rules, sarifRule{
			ID: r.ID, Short: sarifText{r.Doc}, Help: sarifText{r.Remedy}, Default: sarifConfig{level(r.Severity)},
		})
	}
	results := make([]sarifResult, 0, len(findings))
	for _, f := range findings {
		location := sarifLocation{Physical: sarifPhysical{
			Artifact: sarifArtifact{URI: (&url.URL{Path: f.File}).EscapedPath()}, Region: sarifRegion{StartLine: max(1, f.Line), StartColumn: max(1, f.Column)},
		}}
		if f.Object != "" {
			location.Logical = []sarifLogical{{Name: f.Object, Kind: "resource"}}
		}
		results = append(results, sarifResult{
			RuleID: f.Rule, RuleIndex: slices.IndexFunc(known, func(r RuleInfo) bool { return r.ID == f.Rule }), Level: level(f.Severity),
			Message: sarifText{f.Message + ". " + f.Remedy}, Locations: []sarifLocation{location},
		})
	}
	out, err := json.MarshalIndent(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{Driver: driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write SARIF: %w", err)
	}
	return append(out, '\n'), nil
}

// level is a severity in SARIF's words.
func level(s Severity) string {
	if s == Info {
		return "note"
	}
	return string(s)
}
