#include "bridge/dtype_support.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "bridge/data_read.h"
#include "bridge/dtypes.h"
#include "bridge/interpret.h"
#include "bridge/raised_by_data.h"

namespace cresset::bridge {
namespace {

using graph::ValueId;

bool is_plain_float(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

// Of integers alone: floats are not taken.
bool is_for_integers(std::string_view op) {
  static constexpr std::array<std::string_view, 4> kNames = {"aten::bitwise_", "aten::gcd", "aten::lcm", "aten::__"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) { return op.starts_with(name); });
}

// The arguments as zeros, but for small constants, which are as they are.
class Zeros {
 public:
  Zeros(const graph::Graph& graph, const std::vector<at::Tensor>& constants) : graph_(graph), constants_(constants) {}

  // Throws what the operator throws. as_floats: such tensors are of f32 instead.
  void run(const graph::Node& node, const std::function<bool(DType)>& as_floats) const {
    const auto value = [&](ValueId id) {
      const graph::Value& v = graph_.value(id);
      const bool as_float = as_floats(v.type.dtype);
      if (v.kind == graph::Value::Kind::Constant && constants_[v.result].dim() == 0 && !as_float)
        return constants_[v.result];
      const at::ScalarType dtype = as_float ? at::kFloat : to_torch(v.type.dtype);
      at::Tensor zeros(at::detail::empty_strided_cpu(integers(v.type.sizes), integers(v.type.strides), dtype));
      return zeros.zero_();
    };
    run_by_aten(graph_, node, value, [&](sym::ExprId e) { return graph_.env().hint(e).value(); });
  }

 private:
  std::vector<int64_t> integers(const std::vector<sym::ExprId>& es) const {
    std::vector<int64_t> out;
    for (const sym::ExprId e : es) out.push_back(graph_.env().hint(e).value());
    return out;
  }

  const graph::Graph& graph_;
  const std::vector<at::Tensor>& constants_;
};

bool runs(const Zeros& zeros, const graph::Node& node, const std::function<bool(DType)>& as_floats) {
  try {
    zeros.run(node, as_floats);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// first: the dtype of its first tensor, if it is given any.
bool raises_by_dtypes(const Zeros& zeros, const graph::Node& node, std::optional<DType> first) {
  try {
    zeros.run(node, [](DType) { return false; });
    return false;
  } catch (const c10::NotImplementedError&) {
    return true;
  } catch (const std::exception&) {
    if (!first || data_check(node.op) != nullptr) return false;  // zeros are at fault, most likely
  }
  // What it takes in another dtype, it refused for the dtypes.
  return runs(zeros, node, [&](DType dtype) { return dtype == first; }) ||
         runs(zeros, node, [](DType dtype) { return !is_integral(dtype); });
}

}  // namespace

bool refuses_dtypes(const graph::Graph& graph, const std::vector<at::Tensor>& constants, graph::OpId op,
                    const std::vector<graph::Arg>& args) {
  const std::string_view name = graph::op_name(op);
  std::optional<DType> first, floats;
  bool mixed = false;
  graph::Graph::for_each_value(args, [&](const ValueId& v) {
    const graph::TensorType& type = graph.type(v);
    first = first.value_or(type.dtype);
    if (type.sizes.empty() && graph.value(v).kind == graph::Value::Kind::Constant) return;  // a number, most likely
    if (is_integral(type.dtype)) return;
    mixed = mixed || (floats && *floats != type.dtype);
    floats = floats.value_or(type.dtype);
  });
  const bool ordinary = floats && is_plain_float(*floats) && !mixed;
  if (ordinary && !is_for_integers(name)) return false;
  if (!name.starts_with("aten::") || is_random(op)) return false;
  std::string key(name);
  bool on_cpu = true, known = true;
  int64_t elements = 0;
  graph::Graph::for_each_value(args, [&](const ValueId& v) {
    const graph::TensorType& type = graph.type(v);
    key += static_cast<char>('A' + static_cast<int>(type.dtype));
    on_cpu = on_cpu && type.device.kind == graph::DeviceKind::Cpu;
    int64_t count = 1;
    for (const auto* list : {&type.sizes, &type.strides})
      for (const sym::ExprId e : *list) known = known && graph.env().hint(e).has_value();
    for (const sym::ExprId e : type.sizes) count *= graph.env().hint_or(e, 1);
    elements += count;
  });
  constexpr int64_t kMost = 1 << 16;
  // What makes tensors of nothing but numbers is asked where these are to be of an unusual dtype.
  bool unusual = false;
  const auto count = [&](sym::ExprId e, int64_t times) {
    known = known && graph.env().hint(e).has_value();
    elements = std::max(elements, times * std::abs(graph.env().hint_or(e, 0)));
    return elements;
  };
  for (const graph::Arg& arg : args) {
    if (const auto* dtype = std::get_if<DType>(&arg)) {
      key += static_cast<char>('a' + static_cast<int>(*dtype));
      unusual = unusual || !(is_plain_float(*dtype) || *dtype == DType::I64);
    }
    if (const auto* device = std::get_if<graph::Device>(&arg))
      on_cpu = on_cpu && device->kind == graph::DeviceKind::Cpu;
    if (first) continue;
    if (const auto* number = std::get_if<sym::ExprId>(&arg)) count(*number, 1);
    if (const auto* sizes = std::get_if<std::vector<sym::ExprId>>(&arg))
      for (int64_t n = 1; const sym::ExprId e : *sizes) n = std::clamp<int64_t>(count(e, n), 1, kMost + 1);
  }
  if (!first && !unusual) return false;
  if (!on_cpu || !known || elements > kMost) return false;
  static std::mutex mutex;
  static auto* const tried = new std::unordered_map<std::string, bool>;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = tried->find(key); found != tried->end()) return found->second;
  }
  graph::Node node;  // in no graph
  node.op = op;
  node.args = args;
  const bool refused = raises_by_dtypes(Zeros(graph, constants), node, first);
  const std::lock_guard lock(mutex);
  return tried->emplace(std::move(key), refused).first->second;
}

}  // namespace cresset::bridge
