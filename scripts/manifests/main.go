// Checks manifests against the schemas of their formats, and prints them as JSON for further checks.
//
// `manifests compose FILE` reads it as Docker Compose does, by that project's own library: schema, undefined
// volumes, configs and secrets. `manifests kubernetes SCHEMAS FILE` checks each document by the schema of its
// kind; the folder of schemas is from a package (check.mjs), and nothing is downloaded here.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

const base = "https://schemas/"

func main() {
	text, err := checked(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(text))
}

func checked(words []string) ([]byte, error) {
	switch {
	case len(words) == 2 && words[0] == "compose":
		return compose(words[1])
	case len(words) == 3 && words[0] == "kubernetes":
		return kubernetes(words[1], words[2])
	}
	return nil, errors.New("expected `compose FILE` or `kubernetes SCHEMAS FILE`")
}

func compose(file string) ([]byte, error) {
	options, err := cli.NewProjectOptions([]string{file})
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}

func kubernetes(folder, file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(schemas(folder))
	var documents []any
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return json.Marshal(documents)
		} else if err != nil {
			return nil, err
		}
		if err := check(compiler, document); err != nil {
			return nil, fmt.Errorf("document %d of %s: %w", len(documents)+1, file, err)
		}
		documents = append(documents, document)
	}
}

func check(compiler *jsonschema.Compiler, document map[string]any) error {
	// As JSON, which is what servers of Kubernetes receive.
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	kind, version := fmt.Sprint(document["kind"]), fmt.Sprint(document["apiVersion"])
	group, version, isInGroup := strings.Cut(version, "/")
	name := strings.ToLower(kind) + "-" + strings.Split(group, ".")[0]
	if isInGroup {
		name += "-" + version
	}
	schema, err := compiler.Compile(base + name + ".json")
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// The folder of schemas, which name each other by paths below a host that does not exist.
type schemas string

func (folder schemas) Load(url string) (any, error) {
	file, err := os.Open(filepath.Join(string(folder), filepath.Base(strings.TrimPrefix(url, base))))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return jsonschema.UnmarshalJSON(file)
}
