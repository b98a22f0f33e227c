package preview

// page is the template of the plan as one page; html/template escapes all that is put in.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fleet plan: {{.Sides}}</title>
<style>
:root { color-scheme: light dark; --line: #8884; --bad: #c22; --warn: #b60; --good: #282; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
td:first-child, th:first-child { text-align: left; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
section { margin: 1.5rem 0; } h2 { font-size: 1.1rem; border-bottom: 1px solid var(--line); }
details { margin: .3rem 0; } summary { cursor: pointer; } ul { margin: .2rem 0 .6rem; }
.delete h2, .held h2, .refused h2, .errors h2 { color: var(--bad); } .risks h2 { color: var(--warn); } .add h2 { color: var(--good); }
.fields td { text-align: left; vertical-align: top; border: 0; padding: .1rem .8rem .1rem 0; }
del { color: var(--bad); } ins { color: var(--good); text-decoration: none; }
footer { color: #888; font-size: 13px; margin-top: 3rem; }
</style>
</head>
<body>
<h1>Fleet plan</h1>
<p><code>{{.Sides}}</code></p>
{{if .Empty}}<p>{{.Nothing}}</p>{{else}}
<table>
<tr><th></th><th>deleted</th><th>left in place</th><th>moved</th><th>changed</th><th>added</th></tr>
{{range .Rows}}<tr><td>{{.Name}}</td><td>{{.C.Delete}}</td><td>{{.C.Leave}}</td><td>{{.C.Move}}</td><td>{{.C.Change}}</td><td>{{.C.Add}}</td></tr>
{{end}}</table>{{end}}
{{with .Plan.Held}}<section class="held"><h2>Held back by the deletion budget</h2><ul>{{range .}}<li>set <code>{{.Set}}</code>: {{.Reason}}<br>{{range .Applications}}<code>{{.}}</code> {{end}}{{range .Risks}}<br>if they go: {{.Message}} (application <code>{{.Application}}</code> on {{.Cluster}}){{end}}{{if .Digest}}<br>{{$.Approve}}{{end}}</li>{{end}}</ul></section>{{end}}
{{with .Refused}}<section class="refused"><h2>Refused by the rules of projects</h2><ul>{{range .}}<li><code>{{.Application}}</code>{{with .Object}} <code>{{.}}</code>{{end}}: {{.Reason}}</li>{{end}}</ul></section>{{end}}
{{with .Plan.Risks}}<section class="risks"><h2>Look at this before you merge</h2><ul>{{range .}}<li>{{.Message}} (application <code>{{.Application}}</code> on <code>{{.Cluster}}</code>)</li>{{end}}</ul></section>{{end}}
{{with .Errors}}<section class="errors"><h2>Errors</h2><ul>{{range .}}<li><code>{{.Where}}</code>: {{.Message}}</li>{{end}}</ul></section>{{end}}
{{with .Before}}<details><summary>{{.}}</summary><ul>{{range $.Old}}<li>{{.}}</li>{{end}}</ul></details>{{end}}
{{range .Sections}}<section class="{{.Class}}"><h2>{{.Title}}</h2>
{{range .Groups}}<details{{if .Fields}} open{{end}}><summary><code>{{.Sign}}</code> {{.Head}}</summary>
{{with .Reason}}<p>{{.}}</p>{{end}}{{with .Members}}<p>{{.}}</p>{{end}}
{{with .Fields}}<table class="fields">{{range .}}<tr><td><code>{{.Path}}</code></td><td>{{with .Old}}<del><code>{{.}}</code></del>{{end}}</td><td>{{with .New}}<ins><code>{{.}}</code></ins>{{end}}</td></tr>{{end}}</table>{{end}}
</details>
{{end}}</section>
{{end}}
{{range .Plan.Notes}}<p>{{.}}</p>{{end}}
<footer>digest <code>{{.Plan.Digest}}</code></footer>
</body>
</html>
`
