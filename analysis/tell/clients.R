# Where load came from, as the plan says and the records tell.

#' Where the load of the workloads with a server came from
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where no run had a part outside of its system
client_text <- function(evidence) {
  with_client <- Filter(function(record) is.list(field(record, "observed", "client")), evidence$records)
  if (length(with_client) == 0) {
    return("")
  }
  names <- unique(vapply(with_client, `[[`, "", "workload"))
  titles <- vapply(intersect(names(evidence$plan$workloads), names),
                   function(name) evidence$plan$workloads[[name]]$title, "")
  remote <- identical(field(evidence$plan, "client", "kind"), "ssh")
  seen <- function(key) {
    values <- lapply(with_client, function(record) field(record, "observed", "client", "link", key))
    listed(unique(vapply(Filter(Negate(is.null), values), value_text, "")))
  }
  where <- if (remote) {
    "a second machine, reached over the network"
  } else {
    paste("a network namespace of the same host, joined to it by a pair of virtual Ethernet devices, so that",
          "client and server share its processors")
  }
  paste0(
    "The load of ", listed(titles), " comes from outside of the system under test: from ", where,
    ", running the image\u2019s own files. The link has an MTU of ", linked(seen("mtu"), "records"),
    if (seen("rate") == "not limited") " bytes and its rate is not limited. " else
      paste0(" bytes and a rate of ", linked(seen("rate"), "records"), " by a token bucket on both ends. "),
    "Systems on the host\u2019s network are reached directly, containers with a bridge by the kernel\u2019s ",
    "translation of their published ports, virtual machines over the bridge of their network device. "
  )
}
