// Time of the most frequent operations of a capture: building, comparing, deciding, simplifying index arithmetic,
// guards.
#include <benchmark/benchmark.h>

#include "guard/guard_program.h"
#include "sym/shape_env.h"

namespace cresset::sym {
namespace {

void build_product(benchmark::State& state) {
  ShapeEnv env;
  const ExprId s0 = env.new_backed("x", 8), c = env.pool().constant(768);
  for (auto _ : state) benchmark::DoNotOptimize(env.pool().mul(s0, c));
}
void build_sum(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  const ExprId a = p.add(p.mul(s0, p.constant(768)), s1), b = p.mul(s1, p.constant(3));
  for (auto _ : state) benchmark::DoNotOptimize(p.add(a, b));
}
void build_new_nodes(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  int64_t n = 2;
  for (auto _ : state) benchmark::DoNotOptimize(p.add(p.mul(s0, p.constant(++n)), s1));
}
void known_equal_same(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  for (auto _ : state) benchmark::DoNotOptimize(env.known_equal(p.mul(s0, s1), p.mul(s1, s0)));
}
void evaluate_known(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  env.evaluate(p.eq(s0, s1), [] { return Reason{}; });
  for (auto _ : state) benchmark::DoNotOptimize(env.evaluate(p.eq(s0, s1), [] { return Reason{}; }));
}
void decide_new(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  int64_t n = 2;
  for (auto _ : state) benchmark::DoNotOptimize(env.statically_known(p.eq(p.mul(s0, p.constant(++n)), s1)));
}
void simplify_index(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  const ExprId s0 = env.new_backed("x", 8), s1 = env.new_backed("y", 8);
  const ExprId c64 = p.constant(64), c12 = p.constant(12);
  for (auto _ : state) {
    state.PauseTiming();
    const ExprId v = env.new_index_var(c64), w = env.new_index_var(c12), u = env.new_index_var(s0),
                 b = env.new_index_var(s1);
    state.ResumeTiming();
    ExprId flat = p.add(v, p.mul(c64, p.add(w, p.mul(c12, p.add(u, p.mul(s0, b))))));
    benchmark::DoNotOptimize(env.simplify(p.mod(p.floor_div(flat, c64), c12)));
    benchmark::DoNotOptimize(env.simplify(p.floor_div(flat, p.mul(p.constant(768), s0))));
  }
}
void guard_check(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  std::vector<ExprId> s;
  std::unordered_map<VarId, uint32_t> slots;
  std::vector<int64_t> values(20, 8);
  for (uint32_t i = 0; i < 20; ++i) {
    s.push_back(env.new_backed("x", 8));
    slots[p.var_of(s.back())] = i;
  }
  for (int i = 1; i < 20; ++i) env.evaluate(p.eq(s[0], s[i]), [] { return Reason{}; });
  env.evaluate(p.ge(s[0], p.constant(2)), [] { return Reason{}; });
  const auto guards = guard::GuardProgram::compile(p, env.minimized_guards(), slots);
  for (auto _ : state) benchmark::DoNotOptimize(guards.first_failure(values.data()));
  state.counters["guards"] = static_cast<double>(guards.size());
}
void minimize(benchmark::State& state) {
  ShapeEnv env;
  ExprPool& p = env.pool();
  std::vector<ExprId> s;
  for (int i = 0; i < 200; ++i) s.push_back(env.new_backed("x", 8));
  for (int i = 1; i < 200; ++i) {
    env.evaluate(p.ne(s[i], p.constant(1)), [] { return Reason{}; });
    env.evaluate(p.eq(p.mod(s[i], p.constant(4)), p.constant(0)), [] { return Reason{}; });
    if (i % 2) env.evaluate(p.eq(s[i - 1], s[i]), [] { return Reason{}; });
  }
  for (auto _ : state) benchmark::DoNotOptimize(env.minimized_guards().size());
  state.counters["recorded"] = static_cast<double>(env.guards().size());
}

BENCHMARK(build_product);
BENCHMARK(build_sum);
BENCHMARK(build_new_nodes)->Iterations(4000);
BENCHMARK(known_equal_same);
BENCHMARK(evaluate_known);
BENCHMARK(decide_new)->Iterations(4000);
BENCHMARK(simplify_index)->Iterations(2000);
BENCHMARK(guard_check);
BENCHMARK(minimize);

}  // namespace
}  // namespace cresset::sym

BENCHMARK_MAIN();
