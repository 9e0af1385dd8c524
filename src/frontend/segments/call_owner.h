// The compiled function for which a call is captured.
#pragma once

#include <memory>

#include "frontend/feedback/feedback.h"

namespace cresset::frontend {

class CallOwner {
 public:
  virtual const Feedback& feedback() const = 0;
  // CPython continues the call after its capture has ended, until the result is destroyed.
  virtual std::shared_ptr<void> begin_eager_fallback() = 0;

 protected:
  ~CallOwner() = default;
};

}  // namespace cresset::frontend
