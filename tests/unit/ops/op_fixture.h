// Runs operator rules without the rest of the compiler: shapes through the rules, values through the reference
// interpreter of tensor loops.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ops/context.h"
#include "ops/op_def.h"

namespace cresset::ops::testing {

using graph::Arg;
using graph::None;
using graph::TensorType;
using graph::ValueId;
using sym::ExprId;

// The elements of one value as one kernel: everything between it and the inputs is computed in place.
class Evaluator final : public ElementContext {
 public:
  Evaluator(graph::Graph& graph, ValueId value) : graph_(graph), kernel_(graph.env_ptr()), scalars_(kernel_) {
    const TensorType& type = graph.type(value);
    Index index;
    for (const ExprId size : type.sizes) {
      index.push_back(graph.env().new_index_var(size));
      kernel_.dims.push_back({graph.pool().var_of(index.back()), size, loop::Dim::Kind::Outer});
    }
    kernel_.buffers.push_back({type.dtype, true, false, "out"});
    buffer_values_.push_back(value);
    kernel_.stores.push_back(
        {{0}, address(graph::contiguous_strides(graph.pool(), type.sizes), index), element(value, index)});
  }

  loop::ScalarId element(ValueId value, const Index& index) override {
    const graph::Value& v = graph_.value(value);
    if (v.kind != graph::Value::Kind::Result) return scalars_.load(buffer(value), address(v.type.strides, index));
    const graph::Node& node = graph_.node(v.node);
    const OpDef* def = find(node.op);
    const OpArgs args(graph_, node.args);
    const graph::Node* outer = std::exchange(node_, &node);
    const loop::ScalarId out = def->op_class == OpClass::View
                                   ? element(args.value(0), def->view(*this, args, v.result, index))
                                   : def->element(*this, args, v.result, index);
    node_ = outer;
    return out;
  }
  loop::ScalarBuilder& scalars() override { return scalars_; }
  const graph::Graph& graph() override { return graph_; }
  const TensorType& result_type(size_t result) override { return graph_.type(node_->results[result]); }

  // `memory`: bytes of each input. Returns the value's bytes, row-major.
  std::vector<char> run(const std::map<ValueId, std::vector<char>>& memory) {
    EXPECT_EQ(loop::verify(kernel_), "") << loop::print(kernel_);
    std::vector<int64_t> symbols;
    for (const sym::VarId var : kernel_.size_symbols()) symbols.push_back(*env().hint(pool().var(var)));
    const TensorType& type = graph_.type(buffer_values_[0]);
    int64_t count = 1;
    for (const ExprId size : type.sizes) count *= *env().hint(size);
    std::vector<char> out(size_t(count * byte_size(type.dtype)));
    std::vector<void*> buffers{out.data()};
    for (size_t i = 1; i < buffer_values_.size(); ++i)
      buffers.push_back(const_cast<char*>(memory.at(buffer_values_[i]).data()));
    if (count > 0) loop::interpret(kernel_, buffers.data(), symbols.data());
    return out;
  }
  const loop::Kernel& kernel() const { return kernel_; }

 private:
  ExprId address(const std::vector<ExprId>& strides, const Index& index) {
    ExprId out = pool().constant(0);
    for (size_t i = 0; i < index.size(); ++i) out = pool().add(out, pool().mul(strides[i], index[i]));
    return env().simplify(out);
  }
  loop::BufferId buffer(ValueId value) {
    for (size_t i = 1; i < buffer_values_.size(); ++i)
      if (buffer_values_[i] == value) return {uint32_t(i)};
    kernel_.buffers.push_back({graph_.type(value).dtype, false, true, ""});
    buffer_values_.push_back(value);
    return {uint32_t(buffer_values_.size() - 1)};
  }

  graph::Graph& graph_;
  loop::Kernel kernel_;
  loop::ScalarBuilder scalars_;
  std::vector<ValueId> buffer_values_;
  const graph::Node* node_ = nullptr;
};

class OpTest : public ::testing::Test {
 protected:
  ExprId n(int64_t value) { return graph_.pool().constant(value); }
  ExprId size(std::string name, int64_t hint) { return env_->new_backed(std::move(name), hint); }
  Arg list(std::vector<ExprId> values) { return values; }
  Arg ints(const std::vector<int64_t>& values) { return builder_.integers(values); }

  ValueId input(std::vector<ExprId> sizes, DType dtype = DType::F32) {
    std::vector<ExprId> strides = graph::contiguous_strides(graph_.pool(), sizes);
    return strided_input(std::move(sizes), std::move(strides), dtype);
  }
  ValueId strided_input(std::vector<ExprId> sizes, std::vector<ExprId> strides, DType dtype = DType::F32) {
    return graph_.add_input({dtype, {}, std::move(sizes), std::move(strides)}, "x");
  }
  ValueId call(std::string_view op, std::vector<Arg> args) { return builder_.call(op, std::move(args)); }
  std::vector<ValueId> call_multi(std::string_view op, std::vector<Arg> args) {
    return builder_.call_multi(op, std::move(args));
  }
  // The rule's refusal; nullopt when it accepts.
  std::optional<FallbackReason> refusal(std::string_view op, std::vector<Arg> args) {
    ShapeContext shapes(graph_, op);
    Result<Types> types = find(op)->shape(shapes, OpArgs(graph_, args));
    if (types.ok()) return std::nullopt;
    return types.fallback().reason;
  }

  std::string text(const std::vector<ExprId>& exprs) {
    std::string out;
    for (const ExprId e : exprs) out += (out.empty() ? "" : ", ") + env_->to_string(env_->simplify(e));
    return "[" + out + "]";
  }
  std::string sizes(ValueId v) { return text(graph_.type(v).sizes); }
  std::string strides(ValueId v) { return text(graph_.type(v).strides); }
  std::vector<int64_t> hints(const std::vector<ExprId>& exprs) {
    std::vector<int64_t> out;
    for (const ExprId e : exprs) out.push_back(env_->hint_or(e, -1));
    return out;
  }
  size_t guards() { return env_->guards().size(); }

  // The value's elements, row-major, for inputs (float32 or int64) that hold 0, 1, 2, ... in memory order.
  std::vector<double> elements(ValueId value) {
    std::map<ValueId, std::vector<char>> memory;
    for (const ValueId v : graph_.inputs) memory[v] = counting(graph_.type(v));
    const std::vector<char> bytes = Evaluator(graph_, value).run(memory);
    return numbers(bytes, graph_.type(value).dtype);
  }

  static std::vector<double> numbers(const std::vector<char>& bytes, DType dtype) {
    std::vector<double> out(bytes.size() / size_t(byte_size(dtype)));
    for (size_t i = 0; i < out.size(); ++i) {
      if (dtype == DType::F32) out[i] = at<float>(bytes, i);
      if (dtype == DType::F64) out[i] = at<double>(bytes, i);
      if (dtype == DType::I64) out[i] = double(at<int64_t>(bytes, i));
      if (dtype == DType::Bool) out[i] = at<uint8_t>(bytes, i);
    }
    return out;
  }

  std::shared_ptr<sym::ShapeEnv> env_ = std::make_shared<sym::ShapeEnv>();
  graph::Graph graph_{env_};
  GraphBuilder builder_{graph_};

 private:
  template <class T>
  static T at(const std::vector<char>& bytes, size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  std::vector<char> counting(const TensorType& type) {
    int64_t last = 0;
    for (size_t i = 0; i < type.rank(); ++i) last += (*env_->hint(type.sizes[i]) - 1) * *env_->hint(type.strides[i]);
    std::vector<char> out(size_t((last + 1) * byte_size(type.dtype)));
    for (int64_t i = 0; i <= last; ++i) {
      const auto f = float(i);
      if (type.dtype == DType::F32) std::memcpy(out.data() + i * 4, &f, 4);
      if (type.dtype == DType::I64) std::memcpy(out.data() + i * 8, &i, 8);
    }
    return out;
  }
};

}  // namespace cresset::ops::testing
