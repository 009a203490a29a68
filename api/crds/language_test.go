package crds_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/readygate/readygate/api/crds"
)

// The oldest supported API server is 1.33, and an API server accepts new expressions only if they compile in the CEL
// environment of the minor version before its own.
var oldest = version.MajorMinor(1, 32)

func TestRulesOfCRDsCompileOnEveryAPIServer(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	newest := environment.DefaultCompatibilityVersion().OffsetMinor(1)
	for language := oldest; !newest.LessThan(language); language = language.OffsetMinor(1) {
		compiler := compiler{environment.MustBaseEnvSet(language), 0}
		for _, definition := range definitions {
			for _, v := range definition.Spec.Versions {
				compiler.compile(t, definition.Name, structural(t, v.Schema.OpenAPIV3Schema), true)
			}
		}
		if compiler.rules < 30 {
			t.Errorf("%d rules were compiled for %s, want those of all CRDs", compiler.rules, language)
		}
	}
}

// A newer function is found.
func TestTheOldestEnvironmentHasNoNewerFunctions(t *testing.T) {
	s := structural(t, &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.distinct() == self"}}})
	results, err := cel.Compile(s, model.SchemaDeclType(s, false), celconfig.PerCallLimit, environment.MustBaseEnvSet(oldest), cel.NewExpressionsEnvLoader())
	if err != nil || len(results) != 1 || results[0].Error == nil {
		t.Errorf("distinct() of Kubernetes 1.34 compiles in the environment of %s: %+v, %v", oldest, results, err)
	}
}

func structural(t *testing.T, v1 *apiextensionsv1.JSONSchemaProps) *schema.Structural {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, &internal, nil); err != nil {
		t.Fatal(err)
	}
	s, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type compiler struct {
	environment *environment.EnvSet
	rules       int
}

func (c *compiler) compile(t *testing.T, path string, s *schema.Structural, root bool) {
	t.Helper()
	if len(s.XValidations) > 0 {
		results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, c.environment, cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, result := range results {
			c.rules++
			if result.Error != nil {
				t.Errorf("%s: %s: %v", path, s.XValidations[i].Rule, result.Error)
			}
			if result.MessageExpressionError != nil {
				t.Errorf("%s: message of %s: %v", path, s.XValidations[i].Rule, result.MessageExpressionError)
			}
		}
	}
	for name, property := range s.Properties {
		c.compile(t, path+"."+name, &property, root && name == "metadata")
	}
	if s.Items != nil {
		c.compile(t, path+"[]", s.Items, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		c.compile(t, path+"{}", s.AdditionalProperties.Structural, false)
	}
}
