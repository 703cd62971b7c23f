/* macros.h - the few compiler attributes that the tree uses, in one place */
#ifndef MS_MACROS_H
#define MS_MACROS_H

#if defined(__GNUC__)
#define MS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MS_MUST_CHECK        __attribute__((warn_unused_result))
#define MS_API               __attribute__((visibility("default")))
#else
#define MS_PRINTF(fmt, args)
#define MS_MUST_CHECK
#define MS_API
#endif

#define MS_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
