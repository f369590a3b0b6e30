package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// A value at a time.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// The series that a query asks for.
type set struct {
	series []storage.Series
	next   int
}

func (s *set) Next() bool                        { s.next++; return s.next <= len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.next-1] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// scrape reads a file as Prometheus reads the answer of a server; the name of the file becomes the instance.
func scrape(file string, now int64) ([]storage.Series, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	symbols := labels.NewSymbolTable()
	parser, err := textparse.New(text, "application/openmetrics-text; version=1.0.0", symbols, textparse.ParserOptions{})
	if err != nil {
		return nil, err
	}
	var all []storage.Series
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var own labels.Labels
		parser.Labels(&own)
		own = labels.NewBuilder(own).Set("instance", file).Labels()
		all = append(all, storage.NewListSeries(own, []chunks.Sample{sample{now, value}}))
	}
}

// evaluate prints each element of an expression's result: its labels, and its value.
func evaluate(expression string, files []string) error {
	now := time.Now()
	var all []storage.Series
	for _, file := range files {
		series, err := scrape(file, now.UnixMilli())
		if err != nil {
			return err
		}
		all = append(all, series...)
	}
	chosen := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		fits := func(series storage.Series) bool {
			return !slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool {
				return !matcher.Matches(series.Labels().Get(matcher.Name))
			})
		}
		var found []storage.Series
		for _, series := range all {
			if fits(series) {
				found = append(found, series)
			}
		}
		return &set{series: found}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000000, Timeout: time.Minute})
	stored := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: chosen}}
	query, err := engine.NewInstantQuery(context.Background(), stored, nil, expression, now)
	if err != nil {
		return err
	}
	result, err := query.Exec(context.Background()).Vector()
	if err != nil {
		return err
	}
	for _, element := range result {
		fmt.Println(element.Metric.String(), element.F)
	}
	return nil
}
