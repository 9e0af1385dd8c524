#pragma once

#include <ATen/ScalarOps.h>

#include "bridge/aten/dtypes.h"

namespace cresset::bridge {

template <class TensorOf, class IntegerOf>
c10::IValue to_torch(const graph::Arg& arg, ArgType type, TensorOf&& tensor, IntegerOf&& integer) {
  struct Visitor {
    TensorOf& tensor;
    IntegerOf& integer;
    ArgType type;
    c10::IValue operator()(graph::None) const { return {}; }
    c10::IValue operator()(graph::ValueId v) const {
      return type == ArgType::Float ? c10::IValue(tensor(v).template item<double>()) : c10::IValue(tensor(v));
    }
    c10::IValue operator()(const std::vector<graph::OptionalValue>& values) const {
      if (type == ArgType::TensorList) {
        c10::List<at::Tensor> list;
        for (const graph::OptionalValue& v : values) list.push_back(tensor(*v));
        return list;
      }
      c10::List<std::optional<at::Tensor>> list;
      for (const graph::OptionalValue& v : values)
        list.push_back(v ? std::optional<at::Tensor>(tensor(*v)) : std::nullopt);
      return list;
    }
    // A number in the place of a tensor becomes a wrapped number.
    c10::IValue number(const at::Scalar& v) const {
      if (type != ArgType::Tensor) return v;
      at::Tensor wrapped = at::native::wrapped_scalar_tensor(v);
      return wrapped;
    }
    c10::IValue operator()(sym::ExprId e) const { return number(at::Scalar(static_cast<int64_t>(integer(e)))); }
    c10::IValue operator()(const std::vector<sym::ExprId>& es) const {
      c10::List<int64_t> list;
      for (const sym::ExprId e : es) list.push_back(integer(e));
      return list;
    }
    c10::IValue operator()(double v) const { return number(v); }
    c10::IValue operator()(bool v) const { return number(v); }
    c10::IValue operator()(const std::vector<double>& v) const { return c10::List<double>(v); }
    c10::IValue operator()(const std::vector<bool>& v) const {
      c10::List<bool> list;
      for (const bool b : v) list.push_back(b);
      return list;
    }
    c10::IValue operator()(const std::string& v) const { return v; }
    c10::IValue operator()(DType v) const { return static_cast<int64_t>(to_torch(v)); }
    c10::IValue operator()(graph::Device v) const { return to_torch(v); }
    c10::IValue operator()(graph::MemoryFormat v) const { return static_cast<int64_t>(to_torch(v)); }
    c10::IValue operator()(graph::StridedLayout) const { return static_cast<int64_t>(c10::kStrided); }
  };
  return std::visit(Visitor{tensor, integer, type}, arg);
}

}  // namespace cresset::bridge
