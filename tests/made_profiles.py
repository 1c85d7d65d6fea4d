"""Profiles as devices leave them, made of names and times."""
import json

from hlotrace.profiler import ProfileData

quoted = json.dumps


def profile(*planes):
    """A ProfileData of (name of a plane, {name of a line: [(event, start, length, {stat: value})]})."""
    texts = []
    for plane, lines in planes:
        events = sorted({e[0] for line in lines.values() for e in line})
        stats = sorted({s for line in lines.values() for e in line for s in e[3]})
        body = [f'name: "{plane}"']
        body += [f'event_metadata {{ key: {i} value {{ id: {i} name: {quoted(e)} }} }}'
                 for i, e in enumerate(events, 1)]
        body += [f'stat_metadata {{ key: {i} value {{ id: {i} name: "{s}" }} }}'
                 for i, s in enumerate(stats, 1)]
        for line, found in lines.items():
            body.append(f'lines {{ name: "{line}" timestamp_ns: 0 ' + " ".join(
                f"events {{ metadata_id: {events.index(name) + 1} offset_ps: {start * 1000} "
                f"duration_ps: {length * 1000} "
                + " ".join(f"stats {{ metadata_id: {stats.index(key) + 1} " +
                           (f'str_value: "{value}"' if isinstance(value, str) else f"int64_value: {value}")
                           + " }"
                           for key, value in given.items()) + " }"
                for name, start, length, given in found) + " }")
        texts.append("planes { " + " ".join(body) + " }")
    return ProfileData.from_text_proto(" ".join(texts))
