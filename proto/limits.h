/* limits.h - every limit of the system, with its reason
 *
 * Read this first: the numbers say what the system is for. */
#ifndef MS_LIMITS_H
#define MS_LIMITS_H

/* Names and texts */
#define MS_NAME_MAX         64 /* node ids, job names, user names: fits a column, a file name and a CN */
#define MS_PRINCIPAL_MAX    80   /* "scheduler:" and a name, with a little room: who owns what */
#define MS_HOST_MAX         256  /* a DNS name (253) or an address literal */
#define MS_PATH_MAX         1024 /* paths in jobs and messages */
#define MS_ADDR_MAX         320  /* "[host]:port" or "unix:path" */
#define MS_CURSOR_MAX       328  /* a host's name, a node's and a length: a place in a list */
#define MS_TEXT_MAX         384  /* a reason that a person reads (MS_ERR_TEXT_MAX) */
#define MS_JOB_TAG_LEN      32   /* hexadecimal: 128 bits that nobody can guess */
#define MS_STAMP_LEN        24   /* a tick's number and 16 bytes of its seal */
#define MS_TOKEN_LEN        32   /* SHA-256 size: group token, digests */
#define MS_STATE_DIGEST_LEN 16   /* XXH3-128: of what a rank pulls, at the speed of memory */

/* Control plane frames */
#define MS_FRAME_MAX      (4U << 20) /* hard cap of one frame; each type has its own below this */
#define MS_FRAME_SMALL    (64U << 10)
#define MS_SPEC_MAX       (256U << 10) /* a job's JSON: the largest sample is 2 KiB */
#define MS_PLAN_MAX       (256U << 10) /* a plan's text: resnet50 for three batch sizes is 80 KiB */
#define MS_LOG_CHUNK_MAX  (64U << 10)
#define MS_UNPACK_FACTOR  16 /* protobuf-c may allocate this many times the frame, not more */
#define MS_UNPACK_MAX     (8U << 20)
#define MS_UNKNOWN_FIELDS 16 /* a newer peer may add a few */

/* Cluster */
#define MS_CPUS_MAX     1024 /* of one host, as glibc counts them: others are left unused */
#define MS_CPUSET_BYTES (MS_CPUS_MAX / 8)
#define MS_WORKERS_MAX  1024  /* ranks of one job: 1024 * 200 bytes of members fit an Assign */
#define MS_NODES_MAX    16384 /* registered nodes: one heartbeat a second is 16k frames/s */
#define MS_PLACE_TRIES_MAX                                                                         \
    3 /* a job whose nodes die before it starts: the third time is no chance */
#define MS_RESTARTS_MAX                                                                            \
    3 /* of a rank without a committed step in between: what kills it is in the job */
#define MS_PROGRESS_MS 200 /* rank 0 tells its steps so often: what people watch, no step more */
#define MS_STUMBLES_MAX                                                                            \
    8 /* processes that end before they are ready for a rank: about 30 s of pauses */
#define MS_GATHER_RANKS                                                                            \
    64 /* of so many a job waits for more losses, 1 ms for each 16 of them: a round tells all */
#define MS_LINKS_MAX 64 /* pairs of processes that did not reach each other, of a job */
#define MS_FORMERS_MORE                                                                            \
    16 /* than ranks: processes of a job that may hold its state, and another has the rank */
#define MS_FORMERS_STORED 64 /* ... and that a restart knows: 10 KiB of the job's row */
#define MS_FORMER_WAIT_MS                                                                          \
    2000 /* ... and have it again, where nobody lets go of another one within this */
#define MS_FORMER_SPARE_MS                                                                         \
    3000 /* ... and lets go of it, where others hold it and their job lacks a node for so long */
#define MS_UNFIT_MAX         64      /* processes that could not serve a rank of a job ... */
#define MS_UNFIT_MS          30000   /* ... are asked again after this: data may be back */
#define MS_HOST_ASIDE_MS     3600000 /* a host that lost two processes within this is set aside */
#define MS_HOST_LOSSES       16      /* ... of which so many are known, for some may be back */
#define MS_HOST_KEY_MAX      257     /* what a host is known by: a letter, and MS_HOST_MAX */
#define MS_HOSTS_ASIDE_MAX   1024    /* a row each, and more than that are no exception */
#define MS_HOST_PAUSE_MS     2000  /* a host that dies closes its connections one after the other */
#define MS_HOST_PAUSE_MAX_MS 64000 /* ... doubled each time it happens again: up to this */
#define MS_NODES_PER_CERT    64 /* a certificate is a host's: more slots than any has NUMA nodes */
#define MS_PRIORITY_MAX      1000   /* of a job, up and down: room for every site's classes */
#define MS_PRIORITY_USERS    100    /* ... of users, unless priority_users says otherwise */
#define MS_JOBS_QUEUED_MAX   100000 /* 100k * 1.5 KiB of spec, as the samples have, is 150 MB */
#define MS_JOBS_OWNER_MAX    25000  /* ... and run, of one principal: four fill it, one cannot */
#define MS_JOBS_ADMIN        1000   /* ... kept for admins: to try what keeps the others waiting */
#define MS_SPECS_MIB         256    /* of specs of jobs that wait or run, unless specs_mib ... */
#define MS_SPECS_OWNER_MIB   64     /* ... of one principal: four fill it, one cannot */
#define MS_SPECS_ADMIN_MIB   8      /* ... above that for admins */
#define MS_SPECS_MIB_MAX     65536  /* ... what an operator can set: hosts have no more */
#define MS_JOBS_KEPT_MAX     200000 /* finished jobs that `msctl jobs --all` still knows */
#define MS_CONNS_MAX         20000  /* nodes, and 3.6k clients beside them */
#define MS_CONNS_USERS       3000   /* of these users together hold ... */
#define MS_CONNS_USER        256    /* ... and one of them: a shell loop's worth, four times over */
#define MS_CONNS_ADMIN       64     /* kept free of users and nodes: an admin always gets in */
#define MS_HALF_OPEN_MAX                                                                           \
    256                      /* before Welcome, of one TCP listener: half a second of handshakes   \
                              */
#define MS_HALF_OPEN_UNIX 64 /* ... of a Unix listener: a Hello takes microseconds */
#define MS_WAITING_MAX                                                                             \
    2048 /* accepted, in front of a listener's door: a descriptor and at most 2 KiB each */
#define MS_LIST_PAGE_MAX 1000         /* rows of one list reply */
#define MS_OUTPUT_SOFT   (1U << 20)   /* unsent bytes to one peer: stop reading from it */
#define MS_OUTPUT_HARD   (16U << 20)  /* ... drop it */
#define MS_OUTPUT_NEWS   (64U << 10)  /* ... and no news of watched jobs until it has read these */
#define MS_OUTPUT_ALL    (128U << 20) /* unsent to all that are no nodes: the worst one is dropped */

/* What one turn of the scheduler's loop may cost: then the others get theirs */
#define MS_TURN_FRAMES      32           /* requests of one connection ... */
#define MS_TURN_FRAMES_NODE 256          /* ... or of a node, whose messages cost microseconds */
#define MS_TURN_BYTES       (256U << 10) /* what the answers to one connection take in memory */
#define MS_TURN_BYTES_ALL   (8U << 20)   /* ... and to all: 2 ms of packing */
/* Of deciding: commit and sending come on top. Two handshakes: on a busy machine a turn is also cut
 * by the slices of others, the more often the longer it is. */
#define MS_TURN_US     5000
#define MS_TURN_STORE  (2U << 20) /* of the disk: one transaction, the reserve has room for it */
#define MS_TURN_LOSSES 1000       /* effects of leases that are over: 250 idle nodes, 2 ms */
#define MS_NEWS_BYTES  (1U << 20) /* updates to watchers in one turn; the rest waits */
#define MS_BIG_FRAMES                                                                              \
    64 /* frames above MS_FRAME_SMALL that clients send at the same time: 16 MiB */
#define MS_BIG_FRAMES_USER  8 /* ... one user: half frames of his own are all that he waits for */
#define MS_BIG_FRAMES_ADMIN 8 /* ... kept for admins */

/* What the scheduler keeps in memory beside nodes and jobs */
#define MS_LOST_NODES_MAX     1024    /* lost or left nodes that `msctl nodes` still names ... */
#define MS_LOST_KEEP_MS       3600000 /* ... for an hour */
#define MS_MEMBERS_KEPT_MAX   100000  /* ranks of ended jobs whose logs can be found: 50 MB */
#define MS_WATCHES_MAX        64      /* of one connection: a shell loop's worth */
#define MS_CANCEL_WAITERS_MAX 64      /* clients that wait for the same cancel */
#define MS_LOG_ROUTES_MAX     1024    /* log reads under way: 64 KiB each in flight at the worst */
#define MS_LOG_ROUTES_OWNER   128     /* ... for one principal: eight fill them, one cannot ... */
#define MS_LOG_ROUTES_CONN    32 /* ... over one connection: without TLS all are one principal */
#define MS_FETCH_GRANTS_MAX   64 /* files that a node holds ready or serves: a descriptor each */
#define MS_FETCH_GRANTS_OWNER                                                                      \
    16                          /* ... for one principal: a claimed one stays as long as he asks   \
                                 */
#define MS_FETCH_GRANTS_ADMIN 8 /* ... kept for admins */
#define MS_EVENTS_KEPT        100000 /* of 20,000 jobs: 30 MB, judged in 0.3 s at a start */
#define MS_EVENTS_PAGE        200    /* of one answer: 100 KiB of the longest texts, half a ms */
#define MS_EVENTS_BYTES       (MS_EVENTS_PAGE * 640) /* ... of texts, numbers and facts: fewer then */
/* A JSON object of one event (facts.h): 64 ranks that recover at once, of names of 16 bytes: a
 * rank, its node, whose state it has and four numbers are 110 bytes. Of longer lists the first. */
#define MS_FACTS_MAX      8192
#define MS_EVENTS_LOOK    2000 /* rows that one answer looks at for those it is asked for */
#define MS_EVENT_READS    32   /* such answers in one turn; other askers are next */
#define MS_EVALS_MAX      100  /* evaluations of a job that are kept: what a screen can show */
#define MS_EVALS_STORE_MS 1000 /* ... of a job that runs, in one write of so many at the most */
#define MS_ROOM_LOOK_MS   1000 /* rows that can wait look for the room that ends may need */
/* After a loss numbers go on at the milliseconds since 2020 times this: more than any cluster can
 * have given away by then, and another number each time that one copy is put back. */
#define MS_JOB_IDS_A_MS      1ULL
#define MS_EVENTS_A_MS       100ULL
#define MS_GENERATIONS_A_MS  1ULL
#define MS_TICKS_A_MS        100ULL
#define MS_NUMBERS_GAP       (1ULL << 32) /* ... or so far above, where they are beyond that */
#define MS_GENERATION_MAX    (1ULL << 53) /* what a double of JSON still holds exactly */
#define MS_JOB_ID_MAX        (1ULL << 53) /* likewise: a thousand jobs a second for 285,000 years */
#define MS_TICKS_MAX         (1ULL << 53)
#define MS_EVENTS_NUMBER_MAX (1ULL << 53)
/* A database that was restored knows less than its nodes: by at most this many placements since its
 * copy, one a second for twelve days. A worker that claims more is not one of ours. */
#define MS_GENERATION_STEP_MAX (1ULL << 20)

#define MS_MEMORY_RESERVE                                                                          \
    (8U << 20) /* one tick's decisions: the end of a job of 1,024 ranks is 2 MiB */

/* Disk */
#define MS_STORE_PAGE 4096 /* of the database, as SQLite makes them */
/* What a row with so many bytes of texts takes of the log of writes at most: pages that are half
 * full, or one behind a long text; the frames around them; numbers and the row's own head. */
#define MS_STORE_COST(bytes)                                                                       \
    ((bytes) + ((bytes) < MS_STORE_PAGE ? (bytes) : MS_STORE_PAGE) + (bytes) / 64 + 384)
/* ... and of a rank, beside others of its job: SQLite leaves 500 bytes of a row with a key of its
 * own in the tree, where pages are half full again, once it is above 1000; the rest has a page. */
#define MS_STORE_MEMBER_COST(bytes) ((bytes) < 800 ? MS_STORE_COST(bytes) : MS_STORE_PAGE + 1024)
#define MS_STORE_RESULTS            (64U << 10) /* of an ended job: its last evaluations */
#define MS_STORE_MEMBER_TEXTS       (MS_NAME_MAX + MS_HOST_MAX + MS_PATH_MAX + MS_PRINCIPAL_MAX + 15)
/* ... and the event that a node is lost which never came back: its job is over without it */
#define MS_STORE_LOSS MS_STORE_COST(MS_NAME_MAX + MS_PRINCIPAL_MAX + 160)
/* The most that one decision writes: a job of all ranks is placed or ends, its own texts with it,
 * and all its nodes with it. What has to go from the history for it is the next turn's. */
#define MS_STORE_DECISION                                                                          \
    (MS_WORKERS_MAX * (MS_STORE_MEMBER_COST(MS_STORE_MEMBER_TEXTS) + MS_STORE_LOSS) +              \
     MS_STORE_COST(MS_SPEC_MAX) + MS_STORE_COST(MS_PLAN_MAX) + MS_STORE_COST(MS_STORE_RESULTS) +   \
     32 * MS_STORE_PAGE)
/* ... and one transaction: a turn is over once it has decided so much */
#define MS_STORE_BATCH (MS_TURN_STORE + MS_STORE_DECISION)
/* Of the log of writes, what the database has to grow by for it: folded in once it is more */
#define MS_STORE_UNFOLDED (4U << 20)
#define MS_STORE_ENDS     (4U << 20) /* 1000 job rows of 3 KiB and the frames around them */
/* On a disk without a byte: what is in the log is folded in, a transaction is written, and folded
 * in as well; then ends have theirs. daemon/sched/cost.c holds the sum against this. */
#define MS_STORE_RESERVE  (26U << 20)
#define MS_STORE_SPARE    (512U << 10) /* free beside a reserve that is made again: no to and fro */
#define MS_STORE_PIECE    (512U << 10) /* of the reserve: a write takes as many as it needs */
#define MS_STORE_LAST     (1U << 20)   /* of both, for ends that ranks report: no cancel below it */
#define MS_STORE_LOST_MAX 4            /* copies of logs of writes that could not be taken whole */

/* Times, milliseconds */
#define MS_HANDSHAKE_MS    5000  /* TLS handshake and Hello */
#define MS_FRAME_MS        30000 /* from the first byte of a frame to its last */
#define MS_IDLE_MS         60000 /* after Welcome: register, ask or watch within this */
#define MS_STALL_MS        30000 /* a peer that takes none of what lies there for it is dropped */
#define MS_LEASE_MS        10000 /* standing cluster: a silent node is lost after this */
#define MS_LEASE_MIN_MS    1000
#define MS_LEASE_MAX_MS    3600000
#define MS_TOPO_TIMEOUT_S  1800 /* dynamic cluster: MindSpore's documented defaults */
#define MS_NODE_TIMEOUT_S  600
#define MS_RECV_TIMEOUT_S  600
#define MS_CLUSTER_RETRY_S 3    /* between two of MindSpore's registrations: MS_CLUSTER_RETRY_NUM */
#define MS_PROBE_MS        1000 /* a half-open duplicate may answer within this */
#define MS_LET_BE_LOG_MS   60000 /* a line about workers of an earlier scheduler, who knock on */
#define MS_HELD_SAY_MS     2000  /* Register was not answered: a probe takes one second of it */
#define MS_REGISTER_MS     10000 /* Register is answered after a probe and a commit at most */
#define MS_CANCEL_GRACE_MS 30000
#define MS_SAVE_AGAIN_MS   5000 /* no rank could save the weights of the last step */
#define MS_STALL_MAX_MS                                                                            \
    INT64_C(2592000000)         /* a job stood still for: 30 days, or a clock jumped               \
                                 */
#define MS_TOPO_LEAVE_MS  3000  /* workers of a cluster that did not form have nothing to finish */
#define MS_LEAVE_SAY_MS   2000  /* ... and leave sooner, or they are named: TERM and its answer */
#define MS_STOP_ANSWER_MS 65000 /* Stop is answered: TERM, 30 s, KILL, and then some */
#define MS_UNHEARD_MS     12000 /* of a job's end: MS_RECONNECT_HEAR_MS and a handshake */
#define MS_ADOPT_NODE_MS  10    /* a node that comes back after a restart: five handshakes' CPU */
#define MS_ADOPT_MAX_MS                                                                            \
    600000 /* ... and all, while they still come: five times what 10,000 took on a busy machine */
#define MS_BLAME_MS             300   /* between "my peer is gone" and the peer's own last word */
#define MS_LOG_READ_MS          10000 /* a node answers a log read within this */
#define MS_FETCH_CLAIM_MS       30000 /* from a ticket to the connection that shows it */
#define MS_NEWS_MS              200   /* watchers of waiting jobs hear of new reasons this often */
#define MS_HEARTBEATS_PER_LEASE 5     /* four may be lost */

/* A worker's line to the scheduler, milliseconds */
#define MS_RECONNECT_MIN_MS   100   /* after a cut: about the time of a restart */
#define MS_RECONNECT_SOON_MS  1000  /* a late scheduler costs a worker no more than this ... */
#define MS_RECONNECT_EAGER_MS 60000 /* ... in the first minute, ... */
#define MS_RECONNECT_LATER_MS 5000  /* ... then this: 10,000 nodes, 2,000 refused SYNs a second */
#define MS_RECONNECT_MAX_MS   30000 /* one that is there and overloaded: full jitter below this */
#define MS_RECONNECT_HEAR_MS  7000  /* ... and with a rank of a dynamic cluster */
#define MS_PATIENCE_MS        30000 /* a silent scheduler is borne so long with a rank in hand ... */
#define MS_PATIENCE_LEASES    3     /* ... and so many leases */

/* Data plane */
#define MS_DATA_FRAME_MAX (1U << 20) /* an abort waits for at most this much */
#define MS_DATA_PORT_MIN  8200
#define MS_DATA_PORT_MAX  8455
#define MS_SCHED_PORT     8118

/* Jobs */
#define MS_CHECKPOINTS_MAX  1000        /* that a job keeps: more is a disk full of one training */
#define MS_BEST_MAX         100         /* weights of the best evaluations that a job keeps */
#define MS_METRICS_PENDING  (1U << 20)  /* lines that wait for room on the disk: 4,000 steps */
#define MS_RANK_LOG_WAITING (1U << 20)  /* ... of a rank's log: 30,000 steps */
#define MS_LOG_WAITING      (64U << 10) /* ... of a program's log: 400 events */
#define MS_CHECKPOINT_MAX   (1U << 20)  /* a manifest: a plan in JSON, and what decides a job */
#define MS_SAVED_LIST_MAX   (1U << 20)  /* what a node says of them: 250 bytes each */
#define MS_CHECKPOINT_FILES 100000      /* names in a folder that is looked through for them */
#define MS_JOB_FILE_MAX     (1U << 20)
/* Levels and values of a YAML or JSON document, a job's or a network's: a layer in another one is
 * three levels down, and a canonical text of MS_NETWORK_MAX has some 8,000 values. */
#define MS_DOCUMENT_DEPTH_MAX  48
#define MS_DOCUMENT_NODES_MAX  16384
#define MS_BATCH_MAX           65536
#define MS_ACCUMULATE_MAX      1024         /* batches of a step: 67 million samples a worker */
#define MS_TEAM_STACK_MIN      (256U << 10) /* of an OpenMP thread: AVX-512 kernels need 48 KiB */
#define MS_THREADS_MAX         MS_CPUS_MAX  /* of a rank: a service may have 4096 tasks */
#define MS_EPOCHS_MAX          1000000
#define MS_CLASSES_MAX         100000
#define MS_LAYERS_MAX          10000       /* of a network, repeated ones each time */
#define MS_NETWORK_MAX         (64U << 10) /* its canonical text: resnet50's has 7 KiB */
#define MS_ONNX_SKIM_MAX       (32U << 20) /* of a model beside its weights: names, nodes, traces */
#define MS_ONNX_TENSORS_MAX    100000      /* its initializers */
#define MS_ONNX_NODES_MAX      20000       /* an exporter makes some ten of a layer */
#define MS_TRANSFORMS_MAX      16
#define MS_CLASS_WEIGHTS_MAX   1024 /* ImageNet has 1,000 classes; 8 KiB of a job */
#define MS_MILESTONES_MAX      64   /* of a schedule: the field uses two to five */
#define MS_GROUPS_MAX          64   /* of parameters: a rate for each block of a deep network */
#define MS_GROUP_PATTERNS_MAX  16   /* of one group; each as long as a parameter's name */
#define MS_PATTERN_MAX         63
#define MS_WEIGHT_PATTERNS_MAX 32 /* of initial weights: excluded, and as many renamed */
#define MS_IMAGE_SIDE_MAX      4096
#define MS_IMAGE_CHANNEL_MAX   16        /* where transforms compute */
#define MS_TOKENS_MAX          65536     /* of a window of text */
#define MS_FEATURES_MAX        (1 << 26) /* values of one record of a user's files */
#define MS_DATA_ROWS_MAX       400000000 /* of them; the permutation of an epoch takes 8 bytes each */

#endif
