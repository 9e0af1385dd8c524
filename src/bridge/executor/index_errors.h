// Errors of indices out of range, which kernels on a GPU report while they run (runtime/index_reports.h). The host
// looks before and after each call of a program on a GPU, and waits for nothing: as with CUDA's own errors, a later
// call may raise the error. It then has run nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/index_fault.h"
#include "runtime/device.h"

namespace cresset::bridge {

// Marks the exceptions of reports, which are eager mode's otherwise (c10::Error, c10::IndexError). Eager mode must not
// run the call in their place: the index may be an earlier call's, and a GPU's own check of indices ends its context.
class IndexReported {};

struct ReportedSite {
  IndexFault fault;
  int64_t dim, extent;
  std::string location;
};

// The words of a bound program's sites, at the same address for its whole life.
class ReportWords {
 public:
  ReportWords(std::shared_ptr<runtime::GpuDevice> device, std::vector<ReportedSite> sites);
  ~ReportWords();
  ReportWords(const ReportWords&) = delete;
  ReportWords& operator=(const ReportWords&) = delete;
  void* address() const;

 private:
  struct Place {
    size_t page, first, count;
  };
  friend class ReportBoard;
  Place place_;
};

// Raises the error of a report that has arrived, from any program. All reports are taken.
void raise_reported();

}  // namespace cresset::bridge
