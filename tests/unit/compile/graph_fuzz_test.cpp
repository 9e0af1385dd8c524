// Random graphs: fused, unfused and reference agree at every size of one compilation. A failing seed is printed; run it
// alone with CRESSET_FUZZ_SEED=n, or more of them with CRESSET_FUZZ_COUNT=n.
#include "harness.h"

namespace cresset::test {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : rng_(seed) {
    b_ = f.size("B", 3);
    s_ = f.size("S", 5);
    add_inputs();
    const int steps = 3 + pick(14);
    for (int i = 0; i < steps; ++i) step();
    const int outputs = 1 + pick(3);
    f.graph->outputs = {values_.back()};
    for (int i = 1; i < outputs; ++i) f.graph->outputs.push_back(any());
  }

  GraphFixture f;

 private:
  int pick(int n) { return static_cast<int>(rng_() % static_cast<uint32_t>(n)); }
  ValueId any() { return values_[static_cast<size_t>(pick(static_cast<int>(values_.size())))]; }
  ValueId recent() {
    return pick(3) == 0 ? any()
                        : values_[values_.size() - 1 -
                                  static_cast<size_t>(pick(std::min<int>(3, static_cast<int>(values_.size()))))];
  }
  const std::vector<ExprId>& sizes(ValueId v) { return f.graph->type(v).sizes; }
  void keep(ValueId v) { values_.push_back(v); }

  void add_inputs() {
    const std::vector<std::vector<ExprId>> shapes = {
        {b_, s_, f.number(4)}, {b_, f.number(4), s_}, {s_, f.number(4)}, {f.number(4)}, {b_, s_},
        {b_, f.number(1), s_}};
    for (const auto& shape : shapes) {
      if (pick(3) == 0 && !values_.empty()) continue;
      if (shape.size() == 3 && pick(4) == 0) {  // channels-last memory
        sym::ExprPool& pool = f.env->pool();
        TensorType type{DType::F32, {}, shape, {pool.mul(shape[1], shape[2]), f.number(1), shape[1]}};
        keep(f.graph->add_input(type, ""));
      } else {
        keep(f.input(shape));
      }
    }
  }

  void step() {
    switch (pick(11)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
      case 4:
        return binary();
      case 5:
        return reduce();
      case 6:
        return normalize();
      case 7:
      case 8:
        return view();
      case 9:
        return concatenate();
      case 10:
        return multiply();
    }
  }
  void unary() {
    static constexpr const char* kOps[] = {"aten::relu", "aten::tanh", "aten::sigmoid", "aten::abs", "aten::neg"};
    keep(f.call(kOps[pick(5)], recent()));
  }
  bool broadcasts(ValueId a, ValueId b) {
    const auto &x = sizes(a), &y = sizes(b);
    for (size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
      const ExprId p = x[x.size() - i], q = y[y.size() - i];
      if (p != q && p != f.number(1) && q != f.number(1)) return false;
    }
    return true;
  }
  void binary() {
    const ValueId a = recent();
    for (int tries = 0; tries < 6; ++tries) {
      const ValueId b = any();
      if (!broadcasts(a, b)) continue;
      if (pick(3) == 0) return keep(f.call("aten::tanh", f.mul(a, b)));
      if (pick(3) == 0) return keep(f.call("aten::maximum", {a, b}));
      return keep(f.add(a, b));
    }
  }
  void reduce() {
    const ValueId a = recent();
    std::vector<int64_t> dims;
    for (size_t d = 0; d < sizes(a).size(); ++d)
      if (pick(2) == 0) dims.push_back(static_cast<int64_t>(d));
    if (dims.empty()) return;
    const bool keepdim = pick(3) != 0;
    if (pick(2) == 0) return keep(f.call("aten::tanh", f.sum(a, dims, keepdim)));
    keep(f.call("aten::amax", {a, f.build.integers(dims), keepdim}));
  }
  void normalize() {
    const ValueId a = recent();
    if (sizes(a).empty()) return;
    const int dim = pick(static_cast<int>(sizes(a).size()));
    if (pick(2) == 0) return keep(f.softmax(a, dim));
    const ValueId mean = f.call("aten::mean.dim", {a, f.build.integers({dim}), true, graph::None{}});
    keep(f.call("aten::sub.Tensor", {a, mean, f.number(1)}));
  }
  void view() {
    const ValueId a = recent();
    const auto& shape = sizes(a);
    const int rank = static_cast<int>(shape.size());
    switch (pick(6)) {
      case 0: {
        std::vector<int64_t> dims;
        for (int d = 0; d < rank; ++d) dims.insert(dims.begin() + pick(d + 1), d);
        return keep(f.permute(a, dims));
      }
      case 1:
        return merge(a);
      case 2:
        return split(a);
      case 3:
        if (rank < 4) keep(f.call("aten::unsqueeze", {a, f.number(pick(rank + 1))}));
        return;
      case 4:
        return expand(a);
      case 5:
        return cut(a);
    }
  }
  ValueId dense(ValueId a) { return f.call("aten::clone", {a, graph::MemoryFormat::Contiguous}); }
  void merge(ValueId a) {
    const auto& shape = sizes(a);
    if (shape.size() < 2) return;
    const size_t d = static_cast<size_t>(pick(static_cast<int>(shape.size()) - 1));
    std::vector<ExprId> to(shape.begin(), shape.end());
    to[d] = f.env->pool().mul(to[d], to[d + 1]);
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    keep(f.view(dense(a), to));
  }
  void split(ValueId a) {
    const auto& shape = sizes(a);
    for (size_t d = 0; d < shape.size() && shape.size() < 4; ++d) {
      if (shape[d] != f.number(4)) continue;
      std::vector<ExprId> to(shape.begin(), shape.end());
      to[d] = f.number(2);
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(d), f.number(2));
      return keep(f.view(dense(a), to));
    }
  }
  void expand(ValueId a) {
    std::vector<ExprId> to(sizes(a).begin(), sizes(a).end());
    for (ExprId& e : to)
      if (e == f.number(1)) e = pick(2) == 0 ? s_ : f.number(3);
    if (to.size() < 4 && pick(2) == 0) to.insert(to.begin(), f.number(2));
    keep(f.call("aten::expand", {a, to, false}));
  }
  void cut(ValueId a) {
    for (size_t d = 0; d < sizes(a).size(); ++d) {
      if (sizes(a)[d] != f.number(4)) continue;
      const auto dim = f.number(static_cast<int64_t>(d));
      if (pick(2) == 0) return keep(f.call("aten::select.int", {a, dim, f.number(pick(4))}));
      return keep(f.call("aten::slice.Tensor", {a, dim, f.number(pick(3)), f.number(4), f.number(1 + pick(2))}));
    }
  }
  void concatenate() {
    const ValueId a = recent();
    if (sizes(a).empty()) return;
    for (int tries = 0; tries < 6; ++tries) {
      const ValueId b = any();
      if (sizes(b) != sizes(a)) continue;
      const auto dim = f.number(pick(static_cast<int>(sizes(a).size())));
      return keep(f.call("aten::cat", {std::vector<graph::OptionalValue>{a, b}, dim}));
    }
  }
  void multiply() {
    const ValueId a = recent();
    if (sizes(a).size() == 2) return keep(f.call("aten::tanh", f.call("aten::mm", {a, f.permute(a, {1, 0})})));
    if (sizes(a).size() == 3) return keep(f.call("aten::tanh", f.call("aten::bmm", {a, f.permute(a, {0, 2, 1})})));
  }

  std::mt19937 rng_;
  ExprId b_, s_;
  std::vector<ValueId> values_;
};

uint32_t number_from(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

TEST(GraphFuzz, FusedUnfusedAndReferenceAgree) {
  const uint32_t first = number_from("CRESSET_FUZZ_SEED", 0);
  const uint32_t count = number_from("CRESSET_FUZZ_COUNT", std::getenv("CRESSET_FUZZ_SEED") != nullptr ? 1 : 500);
  for (uint32_t seed = first; seed < first + count; ++seed) {
    RandomGraph random(seed);
    const std::string text = graph::print(*random.f.graph);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    expect_fusion_agrees(random.f, {{{"B", 3}, {"S", 5}},
                                    {{"B", 1}, {"S", 5}},
                                    {{"B", 2}, {"S", 1}},
                                    {{"B", 0}, {"S", 4}},
                                    {{"B", 4}, {"S", 7}},
                                    {{"B", 7}, {"S", 0}}});
    if (::testing::Test::HasFailure()) {
      std::cerr << "seed " << seed << "\n" << text;
      return;
    }
  }
}

}  // namespace
}  // namespace cresset::test
