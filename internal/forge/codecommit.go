package forge

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// codeCommit speaks AWS' API for CodeCommit and, to find repositories by their
// tags, that for tags.
type codeCommit struct{}

// region becomes part of a host's name.
var region = regexp.MustCompile(`^[a-z]{2,4}(?:-[a-z]{2,12}){1,3}-[0-9]{1,2}$`)

// batch is how many repositories are described by one request.
const batch = 25

func (codeCommit) api(q rutter.ForgeQuery) (string, error) {
	if !region.MatchString(q.Region) {
		return "", rutter.Errorf(rutter.CodeInvalid, "region %s is no region of AWS: write one such as eu-central-1", quote(q.Region))
	}
	if q.API == "" {
		return "https://codecommit." + q.Region + "." + awsDomain(q.Region), nil
	}
	return q.API, nil
}

func awsDomain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

const (
	commitTarget  = "CodeCommit_20150413."
	taggingTarget = "ResourceGroupsTaggingAPI_20170126."
)

// awsQuestion is a call of a service of AWS.
func (s *session) awsQuestion(what, target string, input any) (question, error) {
	body, err := json.Marshal(input)
	if err != nil {
		return question{}, s.fail(what, rutter.CodeInternal, "%w", err)
	}
	service, at := "codecommit", s.at(nil)
	if strings.HasPrefix(target, taggingTarget) {
		service = "tagging"
		if s.q.API == "" {
			at = &url.URL{Scheme: "https", Host: "tagging." + s.q.Region + "." + awsDomain(s.q.Region)}
		}
	}
	at.Path, at.RawPath = strings.TrimRight(at.Path, "/")+"/", ""
	return question{
		what: what, method: http.MethodPost, url: at, body: body, accept: "application/x-amz-json-1.1",
		header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {target}},
		sign:   func(req *http.Request) error { return s.sign(req, body, service) },
	}, nil
}

type commitName struct {
	Name string `json:"repositoryName"`
}

func (n commitName) lacks() string { return unless(n.Name != "", "repositoryName") }

type commitNames struct {
	Repositories json.RawMessage `json:"repositories"`
	Next         string          `json:"nextToken"`
}

func (n commitNames) lacks() string { return unless(n.Repositories != nil, "repositories") }

type commitTagged struct {
	ARN string `json:"ResourceARN"`
}

func (t commitTagged) lacks() string {
	return unless(commitARN.MatchString(t.ARN), "ResourceARN of CodeCommit")
}

// commitARN is arn:aws:codecommit:region:account:name.
var commitARN = regexp.MustCompile(`^arn:aws[a-z-]*:codecommit:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_.-]+$`)

type commitTags struct {
	List json.RawMessage `json:"ResourceTagMappingList"`
	Next string          `json:"PaginationToken"`
}

func (t commitTags) lacks() string { return unless(t.List != nil, "ResourceTagMappingList") }

type commitRepo struct {
	Account       string `json:"accountId"`
	ID            string `json:"repositoryId"`
	Name          string `json:"repositoryName"`
	HTTP          string `json:"cloneUrlHttp"`
	SSH           string `json:"cloneUrlSsh"`
	DefaultBranch string `json:"defaultBranch"`
}

func (r commitRepo) lacks() string {
	return unless(r.ID != "" && r.Name != "" && r.Account != "", "repositoryId, repositoryName and accountId")
}

type commitRepos struct {
	Repositories json.RawMessage `json:"repositories"`
	Errors       []struct {
		Name string `json:"repositoryName"`
		Code string `json:"errorCode"`
	} `json:"errors"`
}

func (r commitRepos) lacks() string { return unless(r.Repositories != nil, "repositories") }

type commitBranches struct {
	Branches *[]string `json:"branches"`
	Next     string    `json:"nextToken"`
}

func (b commitBranches) lacks() string { return unless(b.Branches != nil, "branches") }

// tokens reads a list whose parts follow each other by a token in the body.
func tokens[T any](s *session, target string, input map[string]any, field string, read func(*reply) ([]T, string, error)) func(question, *reply) (page[T], error) {
	return func(q question, r *reply) (page[T], error) {
		items, token, err := read(r)
		p := page[T]{items: items, total: -1}
		if err != nil || token == "" {
			return p, err
		}
		more := maps.Clone(input)
		more[field] = token
		next, err := s.awsQuestion(q.what, target, more)
		p.next = &next
		return p, err
	}
}

// names are the repositories' names: those with the tags, or all.
func (codeCommit) names(ctx context.Context, s *session) ([]string, error) {
	if len(s.q.TagFilters) > 0 {
		return taggedNames(ctx, s)
	}
	target, input := commitTarget+"ListRepositories", map[string]any{"sortBy": "repositoryName", "order": "ascending"}
	first, err := s.awsQuestion(s.what, target, input)
	if err != nil {
		return nil, err
	}
	found, err := walk(ctx, s, first, lister[commitName]{read: tokens(s, target, input, "nextToken", readNames), id: func(n commitName) string { return n.Name }, pinned: true})
	return values(found, func(n commitName) string { return n.Name }), err
}

func readNames(r *reply) ([]commitName, string, error) {
	outer, err := one[commitNames](r)
	if err != nil {
		return nil, "", err
	}
	items, err := elements[commitName](outer.Repositories)
	return items, outer.Next, err
}

func readTags(r *reply) ([]commitTagged, string, error) {
	outer, err := one[commitTags](r)
	if err != nil {
		return nil, "", err
	}
	items, err := elements[commitTagged](outer.List)
	return items, outer.Next, err
}

func taggedNames(ctx context.Context, s *session) ([]string, error) {
	filters := make([]map[string]any, 0, len(s.q.TagFilters))
	for _, key := range slices.Sorted(maps.Keys(s.q.TagFilters)) {
		filter := map[string]any{"Key": key}
		if value := s.q.TagFilters[key]; value != "" {
			filter["Values"] = []string{value}
		}
		filters = append(filters, filter)
	}
	target, input := taggingTarget+"GetResources", map[string]any{"ResourceTypeFilters": []string{"codecommit"}, "TagFilters": filters, "ResourcesPerPage": 100}
	first, err := s.awsQuestion(s.what, target, input)
	if err != nil {
		return nil, err
	}
	found, err := walk(ctx, s, first, lister[commitTagged]{read: tokens(s, target, input, "PaginationToken", readTags), id: func(t commitTagged) string { return t.ARN }, pinned: true})
	return values(found, func(t commitTagged) string { return t.ARN[strings.LastIndexByte(t.ARN, ':')+1:] }), err
}

func (c codeCommit) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	names, err := c.names(ctx, s)
	if err != nil {
		return nil, err
	}
	repos, err := each(ctx, s, slices.Collect(slices.Chunk(names, batch)), func(ctx context.Context, some []string) ([]commitRepo, error) {
		return c.describe(ctx, s, some)
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r commitRepo) ([]rutter.ForgeRepo, error) {
		address, err := commitURL(s.q, r)
		if err != nil {
			return nil, s.wrap(s.what, err)
		}
		branches := []string{r.DefaultBranch}
		if s.q.AllBranches {
			branches, err = c.branches(ctx, s, r.Name)
		} else if r.DefaultBranch == "" {
			branches = nil // nothing is in it
		}
		return values(branches, func(b string) rutter.ForgeRepo {
			return rutter.ForgeRepo{Organization: r.Account, Repository: r.Name, RepositoryID: r.ID, URL: address, Branch: b}
		}), err
	})
}

func (codeCommit) describe(ctx context.Context, s *session, names []string) ([]commitRepo, error) {
	q, err := s.awsQuestion(s.what, commitTarget+"BatchGetRepositories", map[string]any{"repositoryNames": names})
	if err != nil {
		return nil, err
	}
	r, err := s.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	outer, err := one[commitRepos](r)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	repos, err := elements[commitRepo](outer.Repositories)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	if len(outer.Errors) > 0 {
		return nil, s.fail(s.what, rutter.CodeUnavailable, "repository %s cannot be described (%s)", quote(outer.Errors[0].Name), quote(outer.Errors[0].Code))
	}
	if len(repos) != len(names) {
		return nil, s.fail(s.what, rutter.CodeUnavailable, "of %d repositories that were listed a moment ago, %d are described", len(names), len(repos))
	}
	return repos, nil
}

func commitURL(q rutter.ForgeQuery, r commitRepo) (string, error) {
	if q.CloneProtocol != "https-fips" {
		return cloneURL(q, r.SSH, r.HTTP)
	}
	plain := "git-codecommit." + q.Region + "."
	if !strings.Contains(r.HTTP, "//"+plain) {
		return "", rutter.Errorf(rutter.CodeUnavailable, "repository %s has no address of the usual form: set cloneProtocol to https", quote(r.Name))
	}
	return strings.Replace(r.HTTP, "//"+plain, "//git-codecommit-fips."+q.Region+".", 1), nil
}

func (codeCommit) branches(ctx context.Context, s *session, repo string) ([]string, error) {
	what, target, input := "the branches of "+quote(repo), commitTarget+"ListBranches", map[string]any{"repositoryName": repo}
	first, err := s.awsQuestion(what, target, input)
	if err != nil {
		return nil, err
	}
	return walk(ctx, s, first, lister[string]{read: tokens(s, target, input, "nextToken", readBranches), id: func(b string) string { return b }, pinned: true})
}

func readBranches(r *reply) ([]string, string, error) {
	outer, err := one[commitBranches](r)
	if err != nil {
		return nil, "", err
	}
	if slices.Contains(*outer.Branches, "") {
		return nil, "", rutter.Errorf(rutter.CodeUnavailable, "the answer is not what the API promises: a branch has no name")
	}
	return *outer.Branches, outer.Next, nil
}

func (codeCommit) pullRequests(_ context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	return nil, s.fail(s.what, rutter.CodeUnsupported, "pull requests of CodeCommit are not listed; use another provider, or the plugin generator")
}

type commitFolder struct {
	Path          *string       `json:"folderPath"`
	Files         []commitEntry `json:"files"`
	SubFolders    []commitEntry `json:"subFolders"`
	SymbolicLinks []commitEntry `json:"symbolicLinks"`
	SubModules    []commitEntry `json:"subModules"`
}

type commitEntry struct {
	Absolute string `json:"absolutePath"`
}

func (f commitFolder) lacks() string { return unless(f.Path != nil, "folderPath") }

// pathExists looks into the folder in which the path would be.
func (codeCommit) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, file string) (bool, error) {
	folder := path.Dir(file)
	if folder == "." {
		folder = "/"
	}
	q, err := s.awsQuestion(s.what, commitTarget+"GetFolder", map[string]any{"repositoryName": repo.Repository, "commitSpecifier": refsHeads + repo.Branch, "folderPath": folder})
	if err != nil {
		return false, err
	}
	r, err := s.ask(ctx, q)
	if err != nil {
		return false, err
	}
	if r.missing() {
		if slices.Contains(awsNone, awsFault(r.body)) {
			return false, nil // the folder is not there
		}
		return false, s.fail(s.what, rutter.CodeUnavailable, "HTTP 404 is no answer of CodeCommit's: check api")
	}
	found, err := one[commitFolder](r)
	if err != nil {
		return false, s.wrap(s.what, err)
	}
	for _, entry := range slices.Concat(found.Files, found.SubFolders, found.SymbolicLinks, found.SubModules) {
		if strings.Trim(entry.Absolute, "/") == file {
			return true, nil
		}
	}
	return false, nil
}
