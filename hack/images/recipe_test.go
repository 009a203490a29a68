package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const valid = `images:
- name: readygate/readygate-manager
  files:
  - {from: "bin/{{.Arch}}/manager", to: /readygate-manager, mode: "0755"}
  - {from: LICENSE, to: /licenses/LICENSE, mode: "0644"}
  entrypoint: [/readygate-manager]
`

func read(t *testing.T, content string) (*recipe, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "images.yaml")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return readRecipe(file)
}

func TestRecipeDefaults(t *testing.T) {
	r, err := read(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Images[0].User; got != "65532:65532" {
		t.Errorf("without a user the image runs as %q, must be 65532:65532", got)
	}
}

func TestSourcesAreTheFilesOfAnArchitecture(t *testing.T) {
	r, err := read(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.sources("arm64"), " "); got != "bin/arm64/manager" {
		t.Errorf("sources for arm64 are %q, must be bin/arm64/manager alone", got)
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"no image":                        {valid, "images: []", `images: is empty`},
		"an unknown field":                {"entrypoint:", "entrypont:", `unknown field "entrypont"`},
		"a field twice":                   {"  entrypoint:", "  name: a/b\n  entrypoint:", `key "name" already set in map`},
		"a name with a host":              {"name: readygate/", "name: docker.io/readygate/", `images[0].name: "docker.io/readygate/readygate-manager" is not a name without host and tag`},
		"a name with a tag":               {"readygate-manager\n", "readygate-manager:v1\n", `images[0].name: "readygate/readygate-manager:v1" is not`},
		"a relative target":               {"to: /readygate-manager", "to: readygate-manager", `images[0].files[0].to: "readygate-manager" is not a clean absolute path: write "/readygate-manager"`},
		"a target above the root":         {"to: /licenses/", "to: /../", `images[0].files[1].to: "/../LICENSE" is not a clean absolute path: write "/LICENSE"`},
		"no target":                       {"to: /licenses/LICENSE,", "", `images[0].files[1].to: "" is not the path of a file`},
		"the same target twice":           {"to: /licenses/LICENSE", "to: /readygate-manager", `images[0].files[1].to: "/readygate-manager" is there twice`},
		"a mode that is not octal":        {`"0755"`, `"0789"`, `images[0].files[0].mode: "0789" is not an octal mode`},
		"a mode without quotes":           {`"0755"`, `0755`, `images.files.mode of type string`},
		"no mode":                         {`, mode: "0644"`, ``, `images[0].files[1].mode: "" is not an octal mode`},
		"a user by name":                  {"  entrypoint:", "  user: nonroot\n  entrypoint:", `images[0].user: "nonroot" is not made of numbers, e.g. "65532:65532"`},
		"a link in place of a file":       {"  entrypoint:", "  links: {/licenses/LICENSE: /x}\n  entrypoint:", `images[0].links: "/licenses/LICENSE" is there twice`},
		"no entrypoint":                   {"entrypoint: [/readygate-manager]", "entrypoint: []", `images[0].entrypoint: is empty`},
		"an entrypoint that is not there": {"[/readygate-manager]", "[/manager]", `images[0].entrypoint: "/manager" is not in the image`},
		"two archives of one name":        {valid, valid + strings.ReplaceAll(strings.TrimPrefix(valid, "images:\n"), "name: readygate/", "name: other/"), `images[1].name: "other/readygate-manager" ends like "readygate/readygate-manager"`},
	} {
		t.Run(name, func(t *testing.T) {
			content := strings.Replace(valid, test.old, test.new, 1)
			if content == valid {
				t.Fatalf("%q is not in the recipe", test.old)
			}
			_, err := read(t, content)
			if err == nil {
				t.Fatal("is accepted")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "images.yaml: ") {
				t.Errorf("error is\n%v\nmust name the file and say\n%s", err, test.want)
			}
		})
	}
}

func TestNoRecipe(t *testing.T) {
	if _, err := readRecipe("missing.yaml"); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("error is %v, must name the file", err)
	}
}
