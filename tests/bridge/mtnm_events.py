"""Events of MTNM as element managers send them: types, values, whole events."""

from __future__ import annotations

from typing import Final

from mtosi_jms.bridge.events import NULL, Any, Member, Property, StructuredEvent, TCKind, TypeCode, Value

IDL: Final = "IDL:mtnm.tmforum.org"
STRING: Final = TypeCode.of(TCKind.string)
SHORT: Final = TypeCode.of(TCKind.short)
LONG: Final = TypeCode.of(TCKind.long)
FLOAT: Final = TypeCode.of(TCKind.float)
BOOLEAN: Final = TypeCode.of(TCKind.boolean)
ANY: Final = TypeCode.of(TCKind.any)


def struct(path: str, names: str, *types: TypeCode) -> TypeCode:
    """A struct of MTNM's. `path`: its module and name. `names`: of its members."""
    return TypeCode.struct(f"{IDL}/{path}:1.0", path.rpartition("/")[2], tuple(zip(names.split(), types, strict=True)))


TIME: Final = TypeCode.alias(f"{IDL}/globaldefs/Time_T:1.0", "Time_T", STRING)
LAYER: Final = TypeCode.alias(f"{IDL}/transmissionParameters/LayerRate_T:1.0", "LayerRate_T", SHORT)
PAIR: Final = struct("globaldefs/NameAndStringValue_T", "name value", STRING, STRING)
PAIRS: Final = TypeCode.alias(f"{IDL}/globaldefs/NVSList_T:1.0", "NVSList_T", TypeCode.sequence(PAIR))
NAME: Final = TypeCode.alias(f"{IDL}/globaldefs/NamingAttributes_T:1.0", "NamingAttributes_T", PAIRS)
NAMES: Final = TypeCode.sequence(NAME)
STRINGS: Final = TypeCode.sequence(STRING)
LAYERS: Final = TypeCode.sequence(LAYER)
NAMED_ANY: Final = struct("globaldefs/NameAndAnyValue_T", "name value", STRING, ANY)
NAMED_ANYS: Final = TypeCode.alias(f"{IDL}/globaldefs/NVList_T:1.0", "NVList_T", TypeCode.sequence(NAMED_ANY))
CORRELATED: Final = TypeCode.sequence(
    struct("notifications/CorrelatedNotifications_T", "source notifIDs", NAME, STRINGS)
)


def enumeration(name: str, prefix: str, members: str) -> TypeCode:
    """`members`: names behind the prefix."""
    names = tuple(Member(f"{prefix}{one}") for one in members.split())
    return TypeCode(TCKind.enum, f"{IDL}/notifications/{name}:1.0", name, names)


SEVERITY: Final = enumeration("PerceivedSeverity_T", "PS_", "INDETERMINATE CRITICAL MAJOR MINOR WARNING CLEARED")
AFFECTING: Final = enumeration("ServiceAffecting_T", "SA_", "UNKNOWN SERVICE_AFFECTING NON_SERVICE_AFFECTING")
ACKNOWLEDGE: Final = enumeration("AcknowledgeIndication_T", "AI_", "EVENT_ACKNOWLEDGED EVENT_UNACKNOWLEDGED NA")
OBJECT_TYPE: Final = enumeration(
    "ObjectType_T",
    "OT_",
    "EMS MANAGED_ELEMENT MULTILAYER_SUBNETWORK TOPOLOGICAL_LINK SUBNETWORK_CONNECTION PHYSICAL_TERMINATION_POINT "
    "CONNECTION_TERMINATION_POINT TERMINATION_POINT_POOL EQUIPMENT_HOLDER EQUIPMENT PROTECTION_GROUP "
    "TRAFFIC_DESCRIPTOR AID",
)
TRANSFER: Final = enumeration("FileTransferStatus_T", "FT_", "IN_PROGRESS FAILED COMPLETED")
PROTECTION: Final = enumeration("ProtectionType_T", "PT_", "MSP_APS SNCP")
REASON: Final = enumeration(
    "SwitchReason_T", "SR_", "NA RESTORED SIGNAL_FAIL SIGNAL_MISMATCH SIGNAL_DEGRADE AUTOMATIC_SWITCH MANUAL"
)
THRESHOLD: Final = enumeration("PMThresholdType_T", "TWM_", "HIGHEST HIGH LOW LOWEST")
BACKUP_STAGE: Final = enumeration("Current_OperationStatus_T", "COS_", "Idle Pending InProgress Completed Aborted")
BACKUP: Final = struct("softwareAndDataManager/BackupStatus_T", "operationStatus failureReason", BACKUP_STAGE, STRING)
COMMUNICATION: Final = enumeration("CommunicationState_T", "CS_", "AVAILABLE UNAVAILABLE")
DIRECTION: Final = enumeration("ConnectionDirection_T", "CD_", "UNI BI")
SHAPE: Final = enumeration("SNCType_T", "ST_", "SIMPLE ADD_DROP_A ADD_DROP_Z")
ELEMENT: Final = struct(
    "managedElement/ManagedElement_T",
    "name userLabel nativeEMSName owner location version productName "
    "communicationState emsInSyncState supportedRates additionalInfo",
    *(NAME, *[STRING] * 6, COMMUNICATION, BOOLEAN, LAYERS, PAIRS),
)
LINK: Final = struct(
    "topologicalLink/TopologicalLink_T",
    "name userLabel nativeEMSName owner direction rate aEndTP zEndTP additionalInfo",
    *(NAME, STRING, STRING, STRING, DIRECTION, LAYER, NAME, NAME, PAIRS),
)
CONNECTION: Final = struct(
    "subnetworkConnection/CrossConnect_T",
    "active direction ccType aEndNameList zEndNameList additionalInfo",
    *(BOOLEAN, DIRECTION, SHAPE, NAMES, NAMES, PAIRS),
)
ROUTE: Final = TypeCode.alias(f"{IDL}/subnetworkConnection/Route_T:1.0", "Route_T", TypeCode.sequence(CONNECTION))


def name(text: str) -> tuple[tuple[str, str], ...]:
    """The value of a name: `EMS=a|PTP=/rack=1/slot=2`."""
    return tuple((one.partition("=")[0], one.partition("=")[2]) for one in text.split("|"))


NE: Final = "EMS=Huawei/U2000|ManagedElement=3145729"
PORT: Final = f"{NE}|PTP=/rack=1/shelf=1/slot=5/domain=sdh/port=1"
OTHER_PORT: Final = f"{NE}|PTP=/rack=1/shelf=1/slot=6/domain=sdh/port=1"


def text(value: str) -> Any:
    return Any(STRING, value)


def event(type_name: str, body: Any = NULL, /, **values: Any | Value) -> StructuredEvent:
    """An event; `__` in a name stands for `.` and `::` of X.733."""
    properties = [
        Property(
            one.replace("X733__", "X.733::"), value if isinstance(value, Any) else Any(_USUAL.get(one, STRING), value)
        )
        for one, value in values.items()
        if value is not None
    ]
    return StructuredEvent("tmf_mtnm", type_name, "", (), tuple(properties), body)


_USUAL: Final = {
    "objectName": NAME,
    "objectType": OBJECT_TYPE,
    "emsTime": TIME,
    "neTime": TIME,
    "edgePointRelated": BOOLEAN,
    "isClearable": BOOLEAN,
    "layerRate": LAYER,
    "perceivedSeverity": SEVERITY,
    "serviceAffecting": AFFECTING,
    "serviceAffact": AFFECTING,
    "affectedTPList": NAMES,
    "additionalInfo": PAIRS,
    "acknowledgeIndication": ACKNOWLEDGE,
    "rcaiIndicator": BOOLEAN,
    "X733__SpecificProblems": STRINGS,
    "X733__BackUpObject": NAME,
    "X733__CorrelatedNotifications": CORRELATED,
    "X733__MonitoredAttributes": PAIRS,
    "X733__ProposedRepairActions": STRINGS,
    "X733__AdditionalInfo": PAIRS,
    "thresholdType": THRESHOLD,
    "value": FLOAT,
    "attributeList": NAMED_ANYS,
    "protectionType": PROTECTION,
    "switchReason": REASON,
    "groupName": NAME,
    "protectedTP": NAME,
    "switchAwayFromTP": NAME,
    "switchToTP": NAME,
    "ePGPName": NAME,
    "protectedE": NAME,
    "switchAwayFromE": NAME,
    "switchToE": NAME,
    "route": ROUTE,
    "transferStatus": TRANSFER,
    "percentComplete": SHORT,
    "backupStatus": BACKUP,
    "meName": NAME,
    "operationStatus": BACKUP_STAGE,
}
"""The usual type of each property; others are strings."""


def alarm(**values: Any | Value) -> StructuredEvent:
    """An alarm of twelve properties, with others given; None leaves one out."""
    usual: dict[str, Any | Value] = {
        "notificationId": "1001",
        "objectName": name(PORT),
        "nativeEMSName": "NE-7 slot 5 port 1",
        "objectType": "OT_PHYSICAL_TERMINATION_POINT",
        "emsTime": "20140725140203.0+0800",
        "neTime": "20140725140201.0+0800",
        "isClearable": True,
        "layerRate": 20,
        "probableCause": "LOS",
        "nativeProbableCause": "R_LOS",
        "perceivedSeverity": "PS_CRITICAL",
        "serviceAffecting": "SA_SERVICE_AFFECTING",
    }
    return event("NT_ALARM", **{**usual, **values})


_ABOUT: Final[dict[str, Any | Value]] = {
    "notificationId": "7",
    "objectName": name(NE),
    "objectType": "OT_MANAGED_ELEMENT",
    "emsTime": "20140725140203.0+0800",
    "neTime": "20140725140201.0+0800",
    "edgePointRelated": False,
}
_TIMES: Final[dict[str, Any | Value]] = {
    "notificationId": "8",
    "emsTime": "20140725140203.0+0800",
    "neTime": "20140725140201.0+0800",
}
NEW_ELEMENT: Final = Any(
    ELEMENT,
    (
        name(NE),
        "north",
        "NE-7",
        "",
        "Rack 4",
        "V100R009",
        "OptiX OSN 3500",
        "CS_AVAILABLE",
        True,
        (20, 77),
        (("ip", "10.0.0.7"),),
    ),
)
NEW_ROUTE: Final = (
    (
        True,
        "CD_BI",
        "ST_SIMPLE",
        (name(f"{PORT}|CTP=/sts3c_au4-j=1"),),
        (name(f"{OTHER_PORT}|CTP=/sts3c_au4-j=2"),),
        (),
    ),
)
REALISTIC: Final[dict[str, StructuredEvent]] = {
    "NT_ALARM": alarm(
        probableCauseQualifier="1",
        rcaiIndicator=False,
        edgePointRelated=True,
        acknowledgeIndication="AI_EVENT_UNACKNOWLEDGED",
        affectedTPList=(name(PORT), name(OTHER_PORT)),
        additionalText="Loss of signal",
        X733__EventType="communicationsAlarm",
        X733__SpecificProblems=("R_LOS",),
        X733__BackedUpStatus="BACKED_UP",
        X733__BackUpObject=name(OTHER_PORT),
        X733__TrendIndication="MORE_SEVERE",
        X733__CorrelatedNotifications=((name(NE), ("998", "999")),),
        X733__MonitoredAttributes=(("power", "-31"),),
        X733__ProposedRepairActions=("Check the fibre",),
        X733__AdditionalInfo=(("LSN", "77"),),
    ),
    "NT_TCA": event(
        "NT_TCA",
        **{**_ABOUT, "objectName": name(PORT), "objectType": "OT_PHYSICAL_TERMINATION_POINT"},
        nativeEMSName="port 1",
        isClearable=True,
        perceivedSeverity="PS_MINOR",
        layerRate=25,
        granularity="15min",
        pmParameterName="PMP_ES",
        pmLocation="PML_NEAR_END_Rx",
        thresholdType="TWM_HIGH",
        value=12.0,
        unit="seconds",
        acknowledgeIndication="AI_NA",
    ),
    "NT_OBJECT_CREATION": event("NT_OBJECT_CREATION", NEW_ELEMENT, **_ABOUT),
    "NT_OBJECT_DELETION": event("NT_OBJECT_DELETION", **_ABOUT),
    "NT_OBJECT_DISCOVERY": event("NT_OBJECT_DISCOVERY", **_TIMES, objectName=name(NE), edgePointRelated=True),
    "NT_ATTRIBUTE_VALUE_CHANGE": event(
        "NT_ATTRIBUTE_VALUE_CHANGE",
        **_ABOUT,
        attributeList=(("location", text("Rack 5")), ("userLabel", text("south"))),
    ),
    "NT_STATE_CHANGE": event(
        "NT_STATE_CHANGE", **_ABOUT, attributeList=(("communicationState", Any(COMMUNICATION, "CS_UNAVAILABLE")),)
    ),
    "NT_PROTECTION_SWITCH": event(
        "NT_PROTECTION_SWITCH",
        **_TIMES,
        protectionType="PT_MSP_APS",
        switchReason="SR_SIGNAL_FAIL",
        layerRate=25,
        groupName=name(f"{NE}|PGP=1"),
        protectedTP=name(PORT),
        switchAwayFromTP=name(PORT),
        switchToTP=name(OTHER_PORT),
    ),
    "NT_EPROTECTION_SWITCH": event(
        "NT_EPROTECTION_SWITCH",
        **_TIMES,
        eProtectionGroupType="M_FOR_N",
        eSwitchReason="ESR_MANUAL",
        ePGPName=name(f"{NE}|EPGP=2"),
        protectedE=name(f"{NE}|EquipmentHolder=/rack=1/shelf=1/slot=5|Equipment=1"),
        switchAwayFromE=name(f"{NE}|EquipmentHolder=/rack=1/shelf=1/slot=5|Equipment=1"),
        switchToE=name(f"{NE}|EquipmentHolder=/rack=1/shelf=1/slot=6|Equipment=1"),
    ),
    "NT_ROUTE_CHANGE": event(
        "NT_ROUTE_CHANGE",
        **{
            **_TIMES,
            "objectName": name("EMS=Huawei/U2000|MultiLayerSubnetwork=1|SubnetworkConnection=snc-9"),
            "objectType": "OT_SUBNETWORK_CONNECTION",
        },
        routeChangeEvent="RerouteCompleted",
        route=NEW_ROUTE,
    ),
    "NT_HEARTBEAT": event("NT_HEARTBEAT", notificationId="9"),
    "NT_FILE_TRANSFER_STATUS": event(
        "NT_FILE_TRANSFER_STATUS",
        notificationId="10",
        neTime="",
        fileName="ftp.example.net:/pm/20140725.gz",
        transferStatus="FT_FAILED",
        percentComplete=40,
        failureReason="no room",
    ),
    "NT_BACKUP_STATUS": event(
        "NT_BACKUP_STATUS", **{**_TIMES, "emsTime": None}, backupStatus=("COS_Aborted", "Comms loss"), meName=name(NE)
    ),
}
"""An event of each type, as it should be."""
